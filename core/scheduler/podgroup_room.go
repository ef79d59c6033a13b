package scheduler

// This file finds the room that is to be kept for a pod group that has waited for too long
// (core/lifecycle/podgroups, room.go): where its members will have places once some pods are gone.

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// RoomFor returns where the members of a group find places when the first of some pods are gone: the
// fewest of them, as a search by halves finds them. mustGo are those of them beside which the members
// don't fit there; the later ones stay first. ok is false when there are too few places without all of
// them. The state is left as it is.
//
// It takes O(leaving) pods off their nodes, and makes O(log leaving) attempts.
func (s *Scheduler) RoomFor(r *GroupRequest, leaving []*cluster.Pod) (places []Place, mustGo []*cluster.Pod, ok bool) {
	t := s.transactionFor(r)
	t.quiet = true
	mark := s.state.Mark()
	defer s.state.Rollback(mark)
	t.takeBackNominations()
	units := make([]framework.Unit, len(leaving))
	for i, p := range leaving {
		n, _ := s.state.Placed(p.UID)
		units[len(leaving)-1-i] = framework.Unit{Pods: []*cluster.Pod{p}, Nodes: []cluster.NodeIndex{n}}
	}
	// The first `gone` pods are off their nodes, and the group doesn't fit; without the first `enough` it does.
	gone, enough := 0, 0
	for size := 0; !t.fitsWithout(leaving[gone:enough]); size++ {
		t.takeOffPods(leaving[gone:enough])
		if gone = enough; gone == len(leaving) {
			return nil, nil, false
		}
		enough = min(gone+1<<size, len(leaving))
	}
	for enough-gone > 1 {
		if middle := (gone + enough) / 2; t.fitsWithout(leaving[gone:middle]) {
			enough = middle
		} else {
			t.takeOffPods(leaving[gone:middle])
			gone = middle
		}
	}
	t.takeOffPods(leaving[gone:enough])
	if !t.findAgain() {
		return nil, nil, false
	}
	back := newReprieve(&victimSearch{transaction: t})
	back.bringBackOf(units[len(leaving)-enough:])
	for _, u := range back.stay {
		mustGo = append(mustGo, u.Pods...)
	}
	return t.places, mustGo, true
}

// fitsWithout reports whether the group finds places without some pods, and leaves the state as it is.
func (t *transaction) fitsWithout(pods []*cluster.Pod) bool {
	mark := t.state.Mark()
	defer t.state.Rollback(mark)
	t.takeOffPods(pods)
	return t.findAgain()
}

// findAgain is find after another attempt.
func (t *transaction) findAgain() bool {
	t.places, t.nodes, t.inDomain, t.domain, t.status, t.labels = nil, nil, nil, "", "", t.labelsWith(0)
	return t.find()
}

func (t *transaction) takeOffPods(pods []*cluster.Pod) {
	for _, p := range pods {
		t.engine.TakeOff(p)
	}
}
