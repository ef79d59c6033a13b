package headroom

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/step"
)

// This file makes stand-ins, follows where each has its room, and drops them.

// Pod is a stand-in's part of its record. Its zero value is one that waits, and any pod
// that stands in for none.
type Pod struct {
	self    *standIn // nil of a pod that stands in for none
	missing bool     // the ledger has it that no node has room
}

// Node returns the node on which room is kept, "" for none.
func (p *Pod) Node() string {
	if p.self == nil {
		return ""
	}
	return p.self.node
}

// queue adds a stand-in to the scheduling queue.
func (m *Machine) queue(t *lifecycle.Turn, x *standIn) {
	m.records.Queue(t, x.pod)
	m.records.Get(x.pod.UID).self = x
}

// want is how many stand-ins of a shape there are to be.
type want struct {
	shape *v1.Pod
	count int
}

// reshape gives an object sets of the shapes that are wanted, and reports whether it had
// others. Stand-ins of these are dropped.
func (m *Machine) reshape(a *ask, wants []want) (other bool) {
	for len(a.sets) < len(wants) {
		a.sets = append(a.sets, &set{number: len(a.sets)})
	}
	for i, s := range a.sets {
		if i < len(wants) && s.shape != nil && equality.Semantic.DeepEqual(s.shape, wants[i].shape) {
			continue
		}
		other = true
		m.shrink(s, 0)
		if i < len(wants) {
			s.shape, s.pattern = wants[i].shape, nil
		}
	}
	a.sets = a.sets[:len(wants)]
	return other
}

// resize has the sets have as many stand-ins as are wanted.
func (m *Machine) resize(t *lifecycle.Turn, a *ask, wants []want) {
	for i, w := range wants {
		m.shrink(a.sets[i], w.count)
		for a.sets[i].count < w.count {
			m.queue(t, a.grow(t.State.Schema, a.sets[i]))
		}
	}
}

// shrink leaves a set as many stand-ins, and drops the others: those that wait before those
// that have room, the newest first.
func (m *Machine) shrink(s *set, count int) {
	for _, waiting := range []bool{true, false} {
		for x := s.newest; x != nil && s.count > count; {
			older := x.older
			if x.waits() == waiting {
				m.drop(x)
			}
			x = older
		}
	}
}

func (m *Machine) drop(x *standIn) {
	m.records.Drop(x.pod.UID)
	x.remove()
}

// empty ends the headroom of an object: its stand-ins are dropped first.
func (m *Machine) empty(t *lifecycle.Turn, a *ask) {
	if a.sets == nil {
		return
	}
	for _, s := range a.sets {
		m.shrink(s, 0)
	}
	a.sets, a.consumed = nil, nil
	t.Decide(step.Decision{Kind: step.HeadroomSet, Headroom: a.String(), Reason: "its room is no longer reserved"})
	t.State.RemoveHeadroom(cluster.HeadroomID(a.uid))
}

// StandInPlaced keeps room for a stand-in on the node on which a decision has placed it, in the turn that it had
// there: was is how it was nominated before, nil for not at all. Its item
// stays in flight as long as it has its room.
func (m *Machine) StandInPlaced(t *lifecycle.Turn, item *queue.Item, node string, was *cluster.Nomination) {
	pod := item.Pod()
	p := m.records.Get(pod.UID)
	t.State.Remove(pod.UID)
	t.State.NominateInTurn(pod, node, was)
	p.self.move(node)
	p.missing = false
	t.Decide(step.Decision{Kind: step.RoomKept, Pod: pod.Name(), Node: node, Headroom: m.changed(pod)})
}

// StandInRejected has a stand-in wait that no node takes.
func (m *Machine) StandInRejected(t *lifecycle.Turn, item *queue.Item, message string) {
	pod := item.Pod()
	if p := m.records.Get(pod.UID); !p.missing {
		p.missing = true
		t.Decide(step.Decision{Kind: step.RoomMissing, Pod: pod.Name(), Headroom: m.changed(pod), Reason: message})
	}
}

// Named returns the object that asks for a headroom, as the ledger names it; "" for none.
func (m *Machine) Named(id cluster.HeadroomID) string {
	if a := m.byUID[types.UID(id)]; a != nil {
		return a.String()
	}
	return ""
}

// changed records that a stand-in is in another state, and returns what asks for it, as
// the ledger names it.
func (m *Machine) changed(pod *cluster.Pod) string {
	a := m.byUID[types.UID(pod.StandIn)]
	if a == nil {
		return ""
	}
	a.stale = true
	return a.String()
}

// CheckRoom looks, after pods were placed, for stand-ins whose nodes don't keep their room any
// more, and reports whether there is any. Then the statuses are written that have changed.
func (m *Machine) CheckRoom(t *lifecycle.Turn) (lost bool) {
	lost = m.lostRoom(t)
	if len(m.asks) > 0 {
		for _, a := range m.sorted() {
			m.tell(t, a)
		}
	}
	return lost
}

// lostRoom looks at the nodes that changed since the last time, and reports whether room was
// lost: a stand-in whose node doesn't keep its room is tried elsewhere.
func (m *Machine) lostRoom(t *lifecycle.Turn) (lost bool) {
	if len(m.asks) > 0 {
		lost = m.retryLost(t)
	}
	m.watch.Skip(t.State)
	return lost
}

func (m *Machine) retryLost(t *lifecycle.Turn) (lost bool) {
	m.watch.EachEndangered(t.State, m.scheduler, func(*cluster.Pod) bool { return false }, func(c *cluster.Change) {
		switch {
		case c.Op == cluster.NominationRemoved && c.Pod.StandsIn():
			lost = m.retryIfLost(t, c.Pod) || lost
		case (c.Op == cluster.PodAdded || c.Op == cluster.PodRemoved) && !c.Pod.StandsIn():
			m.used(t, c)
		}
	}, func(pod *cluster.Pod) { lost = m.retryIfLost(t, pod) || lost })
	return lost
}

// retryIfLost retries a stand-in if its node doesn't keep its room, and reports whether it
// is.
func (m *Machine) retryIfLost(t *lifecycle.Turn, pod *cluster.Pod) (lost bool) {
	p := m.records.Get(pod.UID)
	if !pod.StandsIn() || p == nil || p.Node() == "" {
		return false
	}
	node := p.Node()
	why := "the node no longer has room for it"
	switch {
	case t.State.NodeByName(node) == nil:
		why = "the node no longer exists"
	case t.State.NominatedTo(pod.UID) == node && m.scheduler.FitsNominated(pod, m.scheduler.Engine(pod).Class(pod)):
		return false
	}
	t.Decide(step.Decision{Kind: step.RoomLost, Pod: pod.Name(), Node: node, Headroom: m.changed(pod), Reason: why})
	p.self.move("")
	t.State.Nominate(pod, "")
	t.Queue.Requeue(t.Queue.Get(pod.UID), pod)
	return true
}

// counts returns how many stand-ins an object has, and how many of them have room.
func (m *Machine) counts(a *ask) (all, held int) {
	for _, s := range a.sets {
		all += s.count
		held += s.count - s.waiting.Len()
	}
	return all, held
}
