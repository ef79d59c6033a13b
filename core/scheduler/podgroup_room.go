package scheduler

// This file finds the room that is to be kept for a pod group that has waited for too long
// (core/lifecycle/podgroups, room.go): where its members will have places once some pods are gone.

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// maxRoomWork is how many steps each of the two halves of a search for room may take, the one for the pods
// that must go and the one for those of them that may stay after all (transaction.work counts them). It
// takes some tenths of a second. A search that is cut short has more pods go than it needs.
const maxRoomWork = 1 << 18

// Room is where the members of a group find places when some pods have left.
type Room struct {
	Places []Place // none when there are too few even when all have left
	// MustGo are those of the pods beside which the members don't fit there; the later ones stay first.
	MustGo []*cluster.Pod
	// Cut says that the search ended for its length (maxRoomWork): without Places there may be room
	// nevertheless, and with them some of MustGo may stay.
	Cut bool
	// Work is how many steps the search took, and TakenOff how many pods were taken off their nodes for it.
	Work, TakenOff int
}

// RoomFor returns where the members of a group find places when the first of some pods are gone: the
// fewest of them, as a search by halves finds them. The state is left as it is.
//
// It makes O(log leaving) attempts, takes O(leaving) pods off their nodes for each, and stops trying after
// maxRoomWork steps: with the fewest pods of which it is known by then that they are enough.
func (s *Scheduler) RoomFor(r *GroupRequest, leaving []*cluster.Pod) (room Room) {
	t := s.transactionFor(r)
	t.quiet, t.most = true, maxRoomWork
	defer func() { room.Cut, room.Work, room.TakenOff = t.cut, t.work, t.takenOff }()
	mark := s.state.Mark()
	defer s.state.Rollback(mark)
	t.takeBackNominations()
	units := make([]framework.Unit, len(leaving)) // in the order in which they may stay
	for i, p := range leaving {
		n, _ := s.state.Placed(p.UID)
		units[len(leaving)-1-i] = framework.Unit{Pods: []*cluster.Pod{p}, Nodes: []cluster.NodeIndex{n}}
	}
	if !t.fitsWithout(leaving) {
		return room
	}
	enough := t.leaveUntilFits(leaving)
	t.most = 0 // the attempt below was made before, and was short enough
	if !t.findAgain() {
		return room
	}
	t.most = t.work + maxRoomWork
	back := newReprieve(&victimSearch{transaction: t})
	back.bringBackOf(units[len(leaving)-enough:])
	for _, u := range back.stay {
		room.MustGo = append(room.MustGo, u.Pods...)
	}
	room.Places = t.places
	return room
}

// leaveUntilFits takes the first of some pods off their nodes, as few as it takes for the group to fit, and
// returns how many. It fits without all of them.
func (t *transaction) leaveUntilFits(leaving []*cluster.Pod) int {
	// The first `gone` pods are off their nodes, and the group doesn't fit; without the first `enough` it does.
	gone, enough := 0, 0
	for size := 0; enough < len(leaving) && !t.fitsWithout(leaving[gone:enough]); size++ {
		t.takeOffPods(leaving[gone:enough])
		gone, enough = enough, min(enough+1<<size, len(leaving))
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
	return enough
}

// fitsWithout reports whether the group finds places without some pods, and leaves the state as it is. It
// doesn't look when the work is used up.
func (t *transaction) fitsWithout(pods []*cluster.Pod) bool {
	if t.exhausted() {
		return false
	}
	mark := t.state.Mark()
	defer t.state.Rollback(mark)
	t.takeOffPods(pods)
	t.anyDomain = true
	defer func() { t.anyDomain = false }()
	return t.findAgain()
}

// findAgain is find after another attempt.
func (t *transaction) findAgain() bool {
	t.places, t.nodes, t.inDomain, t.domain, t.status, t.labels = nil, nil, nil, "", "", t.labelsWith(0)
	return t.find()
}

func (t *transaction) takeOffPods(pods []*cluster.Pod) {
	t.takenOff += len(pods)
	for _, p := range pods {
		t.engine.TakeOff(p)
	}
}
