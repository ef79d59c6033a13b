package scaledown

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
)

// This file holds the simulator: the world in which the pods of candidates have moved, and
// how pods move there and back. Between two calls it holds that
//
//   - without the moves the world is the primary's state as it was followed last, slot for
//     slot: a node's pods are the primary's, in its order, and behind them the moved[node] pods
//     that have their homes there;
//   - a candidate's node carries ToBeDeletedTaint, has no home of others, and of its pods those
//     only that needn't be evicted;
//   - each home fitted when the pod was placed there, and has been confirmed since by whatever
//     has changed that could make a difference;
//   - an object is the primary's, except for those that moves have changed (objects.go).

// Simulator finds nodes that could be removed together. One goroutine at a time may call it.
// It reads the primary, which must not change meanwhile.
type Simulator struct {
	primary *cluster.State
	world   *cluster.Follower
	packers

	candidates []*candidate // in the order in which they were found
	byNode     map[cluster.NodeIndex]*candidate
	// retired are candidates that were undone since the world followed last: somebody may hold
	// one still. From the next Follow on they are spare, and their memory is used again.
	retired, spare []*candidate
	moved          []int32 // by node index: how many pods have their homes there
	// guests are the pods beside those of candidates that the last pass has placed: displaced
	// ones, and pending ones that fit. They leave before the next.
	guests []*cluster.Pod
	lent   cluster.Former // the objects that guests have changed
	// hints are the nodes, by name, that were homes of pods whose candidates were undone since
	// the last pass.
	hints map[types.UID]string
	// noPlace are the nodes, by name, whose pods had nowhere to go, until they are looked at
	// again.
	noPlace map[string]*stuck
	// skipped are the nodes, by name, that passes had no time for, with the first of these
	// passes.
	skipped map[string]uint64
	passes  uint64
	// doubts are why candidates may not go any more though nothing on their nodes has changed
	// since the last pass.
	doubts doubts
	// unsettled says that something in the world has changed since homes were confirmed by
	// rules that look beyond nodes (settle).
	unsettled bool
	signed    uint64 // the world's SignatureVersion by which the classes of homes are

	checks checks
	// sets are the nodes that go together, by each of them (podgroups.go), since the primary changed; nil for a
	// node that goes alone.
	sets map[cluster.NodeIndex]*nodeSet
	// version counts what has changed that the outcome of a pass depends on, but for the time.
	version  uint64
	last     *outcome // of the last pass; nil when it can't be that of the next
	asked    asked    // by the request of the last pass
	repeated bool     // the last pass came to the outcome of the one before
	rebuilt  bool     // what Check says, sets and outcomes are found from nothing in each pass
}

// candidate is a node whose pods have moved.
type candidate struct {
	node    cluster.NodeIndex
	info    *cluster.NodeInfo // as the primary has it
	options *cluster.GroupOptions
	pods    []*cluster.Pod // all of the node's, in the primary's order
	homes   []home
	uses    []use   // of budgets
	owners  []owner // of the pods, each once
	// was are the objects that its pods have changed when they moved.
	was cluster.Former
	// ages says that the verdict on some of the pods changes with time.
	ages bool
	// recount says that pods have become ready, or aren't any more, since uses were counted.
	recount bool
	removal *autoscaler.Removal
}

// marked returns how the world has the node: as one on its way out.
func (c *candidate) marked() *cluster.NodeInfo {
	return asLeaving(c.info)
}

// home is where a pod of a candidate would go.
type home struct {
	pod    *cluster.Pod
	engine *engine.Engine
	class  *engine.Class
	at     cluster.NodeIndex // NoNode while it is looked for
}

// New returns a simulator of a primary whose journal was never trimmed, or an error that
// names the profile for which there can be no engine.
func New(primary *cluster.State, profiles []*framework.Profile, how engine.Options) (*Simulator, error) {
	world := cluster.Follow(primary)
	packing, err := newPackers(world.State, profiles, how)
	if err != nil {
		return nil, err
	}
	return &Simulator{primary: primary, world: world, packers: packing, byNode: map[cluster.NodeIndex]*candidate{},
		hints: map[types.UID]string{}, noPlace: map[string]*stuck{}, sets: map[cluster.NodeIndex]*nodeSet{}, skipped: map[string]uint64{}, rebuilt: how.Rebuilt}, nil
}

// Between has f called after each change of the simulated world, and for each node that a pass looks
// at; nil for nothing. f must not use the world.
func (s *Simulator) Between(f func()) { s.world.Between(f) }

// find places a pod on the node that its hint names, if that takes it, and otherwise on the best.
// It returns NoNode, and places nothing, when none does. It notes which objects that has changed.
func (s *Simulator) find(p *cluster.Pod, e *engine.Engine, class *engine.Class, was *cluster.Former) cluster.NodeIndex {
	s.unsettled = true
	class = e.Current(class, p)
	if name, ok := s.hints[p.UID]; ok {
		if n := s.world.NodeByName(name); n != nil && e.FitsOn(class, n) {
			was.Note(s.put(p, n.Index))
			return n.Index
		}
	}
	best, ok := e.Best(class)
	if !ok {
		return cluster.NoNode
	}
	was.Note(s.put(p, best.Node))
	return best.Node
}

// put places a pod that has no node in the world, and returns the objects that it has changed.
func (s *Simulator) put(p *cluster.Pod, at cluster.NodeIndex) []cluster.ObjectChange {
	for len(s.moved) <= int(at) {
		s.moved = append(s.moved, 0)
	}
	s.moved[at]++
	return s.engine(p).PlaceOn(p, at)
}

// takeOff takes a pod that put has placed off its node, and returns the objects that it has changed.
func (s *Simulator) takeOff(p *cluster.Pod, at cluster.NodeIndex) []cluster.ObjectChange {
	s.moved[at]--
	return s.engine(p).TakeOff(p)
}

// dismiss takes the guests off their nodes.
func (s *Simulator) dismiss() {
	for _, p := range s.guests {
		i, _ := s.world.Placed(p.UID)
		s.takeOff(p, i)
		s.unsettled = true // others may be where they are because it was there
		s.version++
	}
	s.guests = s.guests[:0]
	s.lent.Restore(s.world.State)
}

// isHome reports whether pods have moved to a node.
func (s *Simulator) isHome(n cluster.NodeIndex) bool { return int(n) < len(s.moved) && s.moved[n] > 0 }

// undo has a candidate be a node as the primary has it, and if it is entangled, with it all that are.
// Its pods' homes are hints from then on. It takes O(pods).
func (s *Simulator) undo(c *candidate) {
	switch {
	case s.byNode[c.node] != c: // undone with another
	case s.entangled(c):
		s.undoEntangled()
	default:
		s.undoOne(c)
	}
}

// undoOne is undo of one candidate.
func (s *Simulator) undoOne(c *candidate) {
	s.unsettled = true
	s.version++
	for i := range c.homes {
		h := &c.homes[i]
		if h.at == cluster.NoNode {
			continue
		}
		s.hints[h.pod.UID] = s.world.Node(h.at).Name
		s.takeOff(h.pod, h.at)
	}
	s.restore(c)
	delete(s.byNode, c.node)
	s.candidates = slices.DeleteFunc(s.candidates, func(x *candidate) bool { return x == c })
	s.retired = append(s.retired, c)
}

// newCandidate returns a candidate without pods, in the memory of a spare one if there is any.
func (s *Simulator) newCandidate(n *cluster.NodeInfo, at cluster.NodeIndex) *candidate {
	c := &candidate{}
	if last := len(s.spare) - 1; last >= 0 {
		c, s.spare[last] = s.spare[last], nil
		s.spare = s.spare[:last]
	}
	c.node, c.info = at, n
	return c
}

// reuse makes the retired candidates spare. They hold on to nothing but their memory.
func (s *Simulator) reuse() {
	for _, c := range s.retired {
		clear(c.pods)
		clear(c.homes)
		clear(c.uses)
		clear(c.owners)
		*c = candidate{pods: c.pods[:0], homes: c.homes[:0], uses: c.uses[:0], owners: c.owners[:0]}
	}
	s.spare = append(s.spare, s.retired...)
	clear(s.retired)
	s.retired = s.retired[:0]
}

// restore puts a candidate's pods back onto it, in the primary's order, and makes the objects those
// again that they were. Pods that haven't left keep what they have.
func (s *Simulator) restore(c *candidate) {
	for _, p := range slices.Clone(s.world.Node(c.node).Pods) {
		s.world.Remove(p.UID)
	}
	s.world.SetNode(c.info)
	for _, p := range c.pods {
		s.world.PlaceAt(p, c.node)
	}
	c.was.Restore(s.world.State)
}

// undoAll undoes all candidates.
func (s *Simulator) undoAll() {
	for _, c := range slices.Clone(s.candidates) {
		s.undo(c)
	}
}

// asRemoval returns a candidate as plans have it.
func (c *candidate) asRemoval(state *cluster.State) *autoscaler.Removal {
	if c.removal.Homes == nil && len(c.homes) > 0 {
		c.fillHomes(state)
	}
	return c.removal
}

// fillHomes has the candidate's removal say the homes as they are.
func (c *candidate) fillHomes(state *cluster.State) {
	removal := *c.removal
	removal.Homes = make([]autoscaler.Home, len(c.homes))
	for i, h := range c.homes {
		removal.Homes[i] = autoscaler.Home{Pod: h.pod.UID, Node: state.Node(h.at).Name}
	}
	c.removal = &removal
}
