package scaledown

import (
	"slices"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// This file has the world follow the primary. The journal names which pod of a node it is
// about by its place among the node's pods, so what has moved from or to a touched node is
// taken back before the world follows, and has to find its place again after.

// lifted is a pod that was taken off a touched node.
type lifted struct {
	candidate *candidate
	home      int    // of the candidate's homes
	node      string // where it was
}

// Follow brings the world up to date, and undoes the candidates that can't stay what they
// are. It takes O(changes) and O(pods that have their homes on touched nodes). The primary must
// not have trimmed what it did since the last call.
func (s *Simulator) Follow() {
	_, at := s.world.Position()
	changes, ok := s.primary.Since(at)
	if !ok {
		panic("scaledown: the primary has forgotten changes that the simulator hasn't followed")
	}
	s.reuse()
	s.undoEntangled()
	s.dismiss()
	if len(changes) == 0 {
		return
	}
	s.unsettled = true
	s.version++
	changes = slices.Clone(changes)
	s.checks.follow(changes)
	clear(s.sets)
	touched, tainted := touchedNodes(changes)
	for _, i := range touched {
		if c := s.byNode[i]; c != nil {
			s.undo(c)
		}
		if n := s.nodeAt(i); n != nil {
			delete(s.noPlace, n.Name)
		}
	}
	s.undoChanged(changes)
	up := s.lift(touched)
	if err := s.world.CatchUp(); err != nil {
		panic("scaledown: " + err.Error()) // Since has just returned them
	}
	if len(changes) > 16*s.world.Len() {
		s.world.Trim(s.world.Head()) // columns are made anew, and the journal needn't grow beyond
	}
	for _, i := range tainted {
		if c := s.byNode[i]; c != nil {
			c.info = s.primary.Node(i).NodeInfo
			s.world.SetNode(c.marked())
		}
	}
	s.reclassify(changes)
	for i := range up {
		s.setDown(&up[i])
	}
	if len(s.candidates) > 0 { // otherwise there is nobody to judge anew, and a new candidate is judged as things are then
		s.doubts.add(changes)
	}
	for i := range changes {
		if uid := changes[i].Readied(); uid != "" {
			if at, ok := s.primary.Placed(uid); ok && at != cluster.NoNode && s.byNode[at] != nil {
				s.byNode[at].recount = true
			}
		}
	}
}

// touchedNodes returns the nodes that changes name, each once, by index; and those of which
// nothing has changed but the soft taint, which says that a node is a candidate and rejects no
// pod.
func touchedNodes(changes []cluster.Change) (touched, tainted []cluster.NodeIndex) {
	for i := range changes {
		c := &changes[i]
		switch {
		case c.Node == cluster.NoNode:
		case c.Op == cluster.NodeUpdated && c.Info.SameButTaint(c.Old, autoscaler.DeletionCandidateTaint):
			tainted = append(tainted, c.Node)
		default:
			touched = append(touched, c.Node)
		}
	}
	slices.Sort(touched)
	slices.Sort(tainted)
	return slices.Compact(touched), slices.Compact(tainted)
}

// nodeAt returns the node of an index, nil when the world has none there.
func (s *Simulator) nodeAt(i cluster.NodeIndex) *cluster.Node {
	if int(i) >= s.world.Len() {
		return nil
	}
	return s.world.Node(i)
}

// lift takes the pods off touched nodes that have their homes there.
func (s *Simulator) lift(touched []cluster.NodeIndex) (out []lifted) {
	is, any := make([]bool, s.world.Len()), false
	for _, i := range touched {
		if s.isHome(i) {
			is[i], any = true, true
		}
	}
	if !any {
		return nil
	}
	for _, c := range s.candidates {
		for k := range c.homes {
			h := &c.homes[k]
			if !is[h.at] {
				continue
			}
			out = append(out, lifted{c, k, s.world.Node(h.at).Name})
			c.was.Note(s.takeOff(h.pod, h.at))
			h.at = cluster.NoNode
		}
	}
	return out
}

// setDown finds a lifted pod its home again, or another; or undoes its candidate.
func (s *Simulator) setDown(x *lifted) {
	c := x.candidate
	if s.byNode[c.node] != c {
		return // undone meanwhile, on account of another pod
	}
	h := &c.homes[x.home]
	s.hints[h.pod.UID] = x.node
	s.version++
	h.at = s.find(h.pod, h.engine, h.class, &c.was)
	delete(s.hints, h.pod.UID)
	switch {
	case h.at == cluster.NoNode:
		s.undo(c)
	case s.world.Node(h.at).Name != x.node:
		removal := *c.removal // plans have the former
		removal.Homes = nil   // they are others
		c.removal = &removal
	}
}

// reclassify finds the classes of pods anew that changes may have given another.
func (s *Simulator) reclassify(changes []cluster.Change) {
	concerned := s.sched.Reclassifies(changes)
	if v := s.world.SignatureVersion(); v != s.signed {
		s.signed = v
		concerned = func(*cluster.Pod) bool { return true }
	}
	if concerned == nil {
		return
	}
	for _, c := range s.candidates {
		for k := range c.homes {
			if h := &c.homes[k]; concerned(h.pod) {
				h.class = h.engine.Class(h.pod)
			}
		}
	}
}

// columnsFollow is how many changes of the world are kept for columns, so that one that isn't
// asked for some passes needn't be made anew.
const columnsFollow = 1 << 14

// Forget is called after passes. It forgets the world's journal but for the last changes, and the
// classes that no home has when there are many.
func (s *Simulator) Forget(now time.Time) { s.forget(now, columnsFollow) }

// ForgetAll is Forget after a Follow where no passes are made: nobody needs the journal.
func (s *Simulator) ForgetAll(now time.Time) { s.forget(now, 0) }

func (s *Simulator) forget(now time.Time, keep cluster.Seq) {
	if head := s.world.Head(); head > keep {
		s.world.Trim(head - keep)
	}
	s.sched.ForgetClasses(now, func() map[*engine.Class]bool {
		used := map[*engine.Class]bool{}
		for _, c := range s.candidates {
			for k := range c.homes {
				used[c.homes[k].class] = true
			}
		}
		return used
	})
}

// appendMovers appends the pods of a candidate that have moved.
func (c *candidate) appendMovers(out []*cluster.Pod) []*cluster.Pod {
	for i := range c.homes {
		out = append(out, c.homes[i].pod)
	}
	return out
}
