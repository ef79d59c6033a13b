package headroom

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berthproject/berth/core/cluster"
)

// This file finds the stand-in whose room a pod has taken, or waits for in its stead.

// closest returns the stand-in of an object whose room a pod that was placed has most likely
// taken, nil when there is none: one on the pod's node before others, one that requests the same
// before others, and one that waits before one that has room elsewhere; among these the oldest of
// the first set.
func (m *Machine) closest(s *cluster.State, a *ask, pod *cluster.Pod) *standIn {
	if n := s.NodeOf(pod.UID); n != nil {
		if x := m.closestOn(a, pod, n); x != nil {
			return x
		}
	}
	var sameHeld, otherWaits, otherHeld *standIn
	for _, s := range a.sets {
		m.looked++
		waits, oldest := s.waiting.first(), s.oldest
		switch same := s.requests(pod); {
		case same && waits != nil:
			return waits
		case same:
			sameHeld = cmp.Or(sameHeld, oldest)
		default:
			otherWaits, otherHeld = cmp.Or(otherWaits, waits), cmp.Or(otherHeld, oldest)
		}
	}
	return cmp.Or(sameHeld, otherWaits, otherHeld)
}

// closestOn returns the closest stand-in to a pod among those that are nominated to its node, nil
// when there is none. Those that have their room there are found at once. Those that are to be
// placed there (the room is on the way, or was kept for a pod before) are looked through, unless
// none waits at all.
func (m *Machine) closestOn(a *ask, pod *cluster.Pod, n *cluster.Node) (best *standIn) {
	better := func(x *standIn) {
		if x != nil && (best == nil || x.before(best, pod)) {
			best = x
		}
	}
	waiting := false
	for _, s := range a.sets {
		m.looked++
		better(s.held[n.Name].first())
		waiting = waiting || s.waiting.Len() > 0
	}
	if waiting {
		m.waitingFor(a, n, better)
	}
	return best
}

// before reports whether a stand-in is closer to a pod than another on the same node.
func (x *standIn) before(y *standIn, pod *cluster.Pod) bool {
	if same := x.set.requests(pod); same != y.set.requests(pod) {
		return same
	}
	return cmp.Or(cmp.Compare(x.set.number, y.set.number), cmp.Compare(x.number, y.number)) < 0
}

// waitingFor calls f with each stand-in of an object that waits and is nominated to a node.
func (m *Machine) waitingFor(a *ask, n *cluster.Node, f func(*standIn)) {
	prefix := "headroom/" + string(a.uid) + "/"
	from, _ := slices.BinarySearchFunc(n.Nominated, prefix, func(p *cluster.Pod, prefix string) int { return strings.Compare(string(p.UID), prefix) })
	for _, p := range n.Nominated[from:] {
		if !strings.HasPrefix(string(p.UID), prefix) {
			break
		}
		m.looked++
		if r := m.records.Get(p.UID); p.StandIn == cluster.HeadroomID(a.uid) && r != nil && r.self.waits() {
			f(r.self)
		}
	}
}

// closestWaiting returns a stand-in of an object that waits, nil when none does: one that
// requests what a pod does before others, among these the oldest of the first set.
func (m *Machine) closestWaiting(a *ask, pod *cluster.Pod) (best *standIn) {
	for _, s := range a.sets {
		m.looked++
		x := s.waiting.first()
		if x != nil && s.requests(pod) {
			return x
		}
		best = cmp.Or(best, x)
	}
	return best
}
