package cluster

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// The state: what can be asked of nodes and pods, and the changes that others may
// make to them. Each is recorded as primitive changes, which apply.go makes true.
// Invariants:
//
//   - every pod with a node is in pods once, and either on that node or, when the
//     node isn't known, among the orphans of its name;
//   - an index is free, or has a node, never both; the one freed last is used
//     first, so a follower's indices are the primary's;
//   - nobody writes to a node, a pod or an object that the state holds.

// State is a model of the cluster. The zero value is not usable; see New.
// It has one writer and no lock.
type State struct {
	Schema  *Schema
	nodes   []*Node     // by index; nil where free
	free    []NodeIndex // the last is used next
	byName  map[string]NodeIndex
	live    int                     // nodes that aren't nil
	pods    map[types.UID]NodeIndex // where each pod is; NoNode for orphans
	orphans map[string][]*Pod       // pods of nodes that aren't known, by the node's name
	ready   map[types.UID]bool      // pods that are ready, wherever they are (ready.go)
	// priorities counts the pods on nodes by their priority.
	priorities map[int32]int
	groups     map[string]*NodeGroup
	nominated  nominations
	headrooms  headrooms
	objects    objects
	work       workloads
	// members are the members of pod groups that are on nodes.
	members map[PodGroupKey]*placedMembers
	// What follows from the above, for rules.
	facts  factIndex
	topo   topologies
	terms  termIndex
	images images
	// objectsSet counts changes of objects and workloads that rules read, and their undoing.
	objectsSet uint64
	// readEverywhere counts changes of objects that rules read for any node, and their undoing.
	readEverywhere uint64
	index          nodeIndex
	drivers        groupDrivers
	rows           map[string]*Rows // by key
	// How it came about.
	journal journal
	caches  []Cache
}

// New returns an empty state that parses with schema.
func New(schema *Schema) *State {
	s := &State{
		Schema:     schema,
		byName:     map[string]NodeIndex{},
		pods:       map[types.UID]NodeIndex{},
		orphans:    map[string][]*Pod{},
		ready:      map[types.UID]bool{},
		priorities: map[int32]int{},
		groups:     map[string]*NodeGroup{},
		members:    map[PodGroupKey]*placedMembers{},
		rows:       map[string]*Rows{},
		drivers:    groupDrivers{},
	}
	s.facts.init(s)
	s.topo.init()
	s.work.init()
	s.terms.init()
	s.objects.init(s)
	s.nominated.init()
	s.images.init()
	s.index.init()
	return s
}

// Len returns one more than the largest node index ever used; slots may be free.
func (s *State) Len() int { return len(s.nodes) }

// Live returns the number of nodes.
func (s *State) Live() int { return s.live }

// Node returns the node at an index, or nil where there is none.
func (s *State) Node(i NodeIndex) *Node {
	if i < 0 || int(i) >= len(s.nodes) {
		return nil
	}
	return s.nodes[i]
}

// Slots returns the nodes with indices from one number to another, nil where an index is free. The
// list is the state's: the caller only reads it, and until the state changes.
func (s *State) Slots(from, to int) []*Node { return s.nodes[from:to] }

// NodeByName returns a node, or nil.
func (s *State) NodeByName(name string) *Node {
	if i, ok := s.byName[name]; ok {
		return s.nodes[i]
	}
	return nil
}

// Nodes calls f for every node, by index.
func (s *State) Nodes(f func(*Node)) {
	for _, n := range s.nodes {
		if n != nil {
			f(n)
		}
	}
}

// Pods calls f for every pod that has a node, those of nodes that aren't known last and by the
// node's name.
func (s *State) Pods(f func(*Pod)) { s.PodsByNode(func(_ string, p *Pod) { f(p) }) }

// PodsByNode is Pods, with the name of the pod's node.
func (s *State) PodsByNode(f func(node string, p *Pod)) {
	s.Nodes(func(n *Node) {
		for _, p := range n.Pods {
			f(n.Name, p)
		}
	})
	for _, node := range slices.Sorted(maps.Keys(s.orphans)) {
		for _, p := range s.orphans[node] {
			f(node, p)
		}
	}
}

// PodCount returns how many pods have a node, known or not.
func (s *State) PodCount() int { return len(s.pods) }

// PodsOn calls f for every pod of a node, which needn't be known, in O(pods of the node).
func (s *State) PodsOn(node string, f func(*Pod)) {
	if n := s.NodeByName(node); n != nil {
		for _, p := range n.Pods {
			f(p)
		}
	}
	for _, p := range s.orphans[node] {
		f(p)
	}
}

// Placed returns where a pod is: ok is false when the state doesn't hold it,
// and the index is NoNode when its node isn't known.
func (s *State) Placed(uid types.UID) (i NodeIndex, ok bool) {
	i, ok = s.pods[uid]
	return i, ok
}

// NodeOf returns the node that a pod is on, nil when it is on none that is known.
func (s *State) NodeOf(uid types.UID) *Node {
	if i, ok := s.pods[uid]; ok {
		return s.Node(i)
	}
	return nil
}

// NodeNameOf returns the name of the node of a pod in the state, whether or not that node is
// known.
func (s *State) NodeNameOf(pod *Pod) string {
	if n := s.NodeOf(pod.UID); n != nil {
		return n.Name
	}
	return pod.Object.Spec.NodeName
}

// PodOn returns the parsed pod that the state holds under this UID, or nil.
func (s *State) PodOn(uid types.UID) *Pod {
	i, ok := s.pods[uid]
	if !ok {
		return nil
	}
	if i != NoNode {
		return s.nodes[i].Pods[s.position(i, uid)]
	}
	for _, list := range s.orphans {
		for _, p := range list {
			if p.UID == uid {
				return p
			}
		}
	}
	return nil
}

// HasLowerPriority reports whether a pod of a lower priority is on any node, in
// O(priorities).
func (s *State) HasLowerPriority(priority int32) bool {
	for p := range s.priorities { // in any order
		if p < priority {
			return true
		}
	}
	return false
}

// SetNode adds a node or replaces what is known of it. Pods that were bound to
// its name before it was known come to it. An update that says nothing a rule
// could read, as a heartbeat does, leaves no trace.
func (s *State) SetNode(info *NodeInfo) NodeIndex {
	if i, ok := s.byName[info.Name]; ok {
		if sameNode(s.nodes[i].NodeInfo, info) {
			return i
		}
		s.record(Change{Op: NodeUpdated, Node: i, Info: info, Old: s.nodes[i].NodeInfo})
		return i
	}
	i := NodeIndex(len(s.nodes))
	if n := len(s.free); n > 0 {
		i = s.free[n-1]
	}
	s.record(Change{Op: NodeAdded, Node: i, Info: info})
	for len(s.orphans[info.Name]) > 0 {
		p := s.orphans[info.Name][0]
		s.record(Change{Op: OrphanRemoved, Node: NoNode, Pod: p, name: info.Name})
		s.record(Change{Op: PodAdded, Node: i, Pod: p})
	}
	return i
}

// RemoveNode removes a node; pods still bound to it wait as orphans for the
// node to come back or for their own deletion.
func (s *State) RemoveNode(name string) bool {
	i, ok := s.byName[name]
	if !ok {
		return false
	}
	n := s.nodes[i]
	for len(n.Pods) > 0 {
		last := len(n.Pods) - 1
		p := n.Pods[last]
		s.record(Change{Op: PodRemoved, Node: i, Pod: p, pos: int32(last)})
		s.record(Change{Op: OrphanAdded, Node: NoNode, Pod: p, name: name})
	}
	s.record(Change{Op: NodeRemoved, Node: i, Old: n.NodeInfo})
	return true
}

// Place puts a pod on a node, in every respect as if it ran there. A pod that
// the state holds already moves.
func (s *State) Place(p *Pod, node string) {
	s.Remove(p.UID)
	s.Nominate(p, "")
	if i, ok := s.byName[node]; ok {
		s.record(Change{Op: PodAdded, Node: i, Pod: p})
		return
	}
	s.record(Change{Op: OrphanAdded, Node: NoNode, Pod: p, name: node})
}

// PlaceAt is Place for a node index in hand.
func (s *State) PlaceAt(p *Pod, i NodeIndex) {
	s.Remove(p.UID)
	s.Nominate(p, "")
	s.record(Change{Op: PodAdded, Node: i, Pod: p})
}

// Remove takes a pod off its node, and reports whether the state held it.
func (s *State) Remove(uid types.UID) bool {
	i, ok := s.pods[uid]
	if !ok {
		return false
	}
	if i != NoNode {
		pos := s.position(i, uid)
		s.record(Change{Op: PodRemoved, Node: i, Pod: s.nodes[i].Pods[pos], pos: int32(pos)})
		return true
	}
	for name, list := range s.orphans { // at most one list holds it
		if pos := slices.IndexFunc(list, func(p *Pod) bool { return p.UID == uid }); pos >= 0 {
			s.record(Change{Op: OrphanRemoved, Node: NoNode, Pod: list[pos], name: name, pos: int32(pos)})
			return true
		}
	}
	return false
}

func (s *State) position(i NodeIndex, uid types.UID) int {
	return slices.IndexFunc(s.nodes[i].Pods, func(p *Pod) bool { return p.UID == uid })
}
