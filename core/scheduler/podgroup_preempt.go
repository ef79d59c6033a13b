package scheduler

// This file finds out who has to leave so that a pod group finds places (kube-scheduler's
// PodGroupPostFilter with DefaultPreemption). Whoever leaves has a lower priority than the group; members
// of a group whose disruptionMode is all leave together or stay.
//
// kube-scheduler takes everybody of lower priority off the cluster, places the group once, and has those
// come back, one by one, beside whom the members still fit where they are. That is one of the ways here,
// and says how many members there can be places for. Others give the group as many places:
//
//   - the same with the pods of the lowest priorities only;
//   - the members are placed one after the other, and where no node takes one, those leave whom it costs
//     the least, as for a pod alone.
//
// Of these the cheapest counts (framework.PreemptionCost): podgroup_victims.go looks for it. Then those of its
// victims stay after all without whom, too, the members find places somewhere (podgroup_reprieve.go). Where the group requires a topology, each domain
// is looked at. So the outcome is never worse than kube-scheduler's, and nobody leaves for a group that
// doesn't fit then: all members have been placed, in a what-if, where they are nominated to.

import (
	"fmt"
	"slices"

	"github.com/berthproject/berth/core/framework"
)

// Words of kube-scheduler.
const (
	groupPreemption   = "pod group preemption: "
	messageNoVictims  = "No preemption victims found for incoming preemptor"
	messageOngoing    = "ongoing preemption on nominated nodes"
	messageGroupPlace = "found a placement for podgroup, preempting %d victims"
)

// groupVictims are pods without which a group finds places.
type groupVictims struct {
	framework.Victims
	units  []framework.Unit
	cost   framework.PreemptionCost
	places []Place
}

// better reports whether more members have places than with other victims, or as many at a lower cost.
func (v *groupVictims) better(than *groupVictims) bool {
	switch {
	case v == nil || than == nil:
		return v != nil
	case len(v.places) != len(than.places):
		return len(v.places) > len(than.places)
	}
	return v.cost.Compare(&than.cost) < 0
}

// postFilter decides for a group that hasn't found enough places, and says in the decision what it comes
// to: who has to leave for it. Members are nominated to their places then; those that wait for nobody are
// nominated no more.
func (t *transaction) postFilter(d *GroupDecision) {
	message, keep := "", false
	message, keep = t.findVictims(d)
	d.Work, d.TakenOff = t.work, t.takenOff
	if message != "" {
		d.Message += ", " + groupPreemption + message
		for i := range t.hadPlace {
			d.Why[i] = d.Message
		}
	}
	if d.Victims == nil && !keep {
		for i := range t.request.Members {
			t.state.Nominate(t.request.Members[i].Pod, "")
		}
	}
}

// findVictims says in a decision who has to leave for the group, which is nominated to its places then, or
// that it asks for places first; and returns what is said about that. keep is set when the members stay
// nominated as they are.
func (t *transaction) findVictims(d *GroupDecision) (message string, keep bool) {
	first, preempter, reserved := t.request.Members[0].Pod, t.engine.Profile().Preempter, t.anyReserved()
	if preempter == nil {
		return "", reserved
	}
	if why := preempter.Eligible(first); why != nil {
		return why.Messages[0], reserved
	}
	switch {
	case reserved:
		return messageReserved, true
	case slices.ContainsFunc(t.request.Members, func(m Member) bool { return t.Asking(m.Pod.UID) }):
		return messageAsks, true
	case t.awaitsVictims():
		return messageOngoing, true
	}
	if !t.state.HasLowerPriority(first.Priority) {
		return messageNoVictims, false
	}
	v, why := t.searchVictims()
	if v == nil {
		return why, false
	}
	if d.Weighed = t.WeighGroup(t.request.Members, &v.Victims); d.Asks() {
		return messageAsks, true
	}
	for i := range t.request.Members {
		t.state.Nominate(t.request.Members[i].Pod, "")
	}
	for _, p := range v.places {
		t.state.Nominate(t.request.Members[p.Member].Pod, t.state.Node(p.Choice.Node).Name)
	}
	d.Victims = &v.Victims
	return fmt.Sprintf(messageGroupPlace, len(v.Pods)), true
}

// anyReserved reports whether a place is kept for a member on a node that is coming. To withdraw it and nominate
// the member again would be a change of its node, which wakes the group.
func (t *transaction) anyReserved() bool {
	return slices.ContainsFunc(t.request.Members, func(m Member) bool { return t.Reserved(m.Pod.UID) })
}

// awaitsVictims reports whether pods that had to leave a node for a member are still on their way.
func (t *transaction) awaitsVictims() bool {
	seen := map[string]bool{}
	for i := range t.request.Members {
		m := &t.request.Members[i]
		node := t.state.NominatedTo(m.Pod.UID)
		if node == "" || seen[node] {
			continue
		}
		seen[node] = true
		if t.VictimTerminating(m.Pod, m.Class, node) {
			return true
		}
	}
	return false
}
