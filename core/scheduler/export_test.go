package scheduler

import (
	"slices"

	"github.com/berthproject/berth/core/framework"
)

// Reprieve takes off all pods that could leave for a group, places its members, and returns the units that can't come
// back, as they are found and as slowReprieve finds them; ok is false when too few members find places. The state is left
// as it is.
func (s *Scheduler) Reprieve(r *GroupRequest) (fast, slow []framework.Unit, ok bool) {
	for _, slowly := range []bool{false, true} {
		mark := s.state.Mark()
		x := s.transactionFor(r)
		x.quiet = true
		scopes, _ := x.scopes()
		v := victimSearch{transaction: x, goal: x.need, units: x.engine.Leavable(scopes[0].nodes, r.Members[0].Pod.Priority)}
		if r.Topology != "" && r.Placed == 0 {
			x.enter(&scopes[0])
		}
		v.takeOff(v.units)
		if ok = v.placeMembers(); ok {
			units := slices.Clone(v.units)
			x.engine.Profile().Preempter.Order(units, s.state)
			back := newReprieve(&v)
			if slowly {
				back.slowReprieve(units)
				slow = back.stay
			} else {
				back.bringBackOf(units)
				fast = back.stay
			}
		}
		s.state.Rollback(mark)
		if !ok {
			return nil, nil, false
		}
	}
	return fast, slow, true
}

// slowReprieve is bringBackOf as it is meant: each question is about all members, one after the other.
func (r *reprieve) slowReprieve(units []framework.Unit) {
	if len(units) == 0 || r.bringBack(units) && r.membersFitInOrder() {
		return
	}
	if r.takeOff(units); len(units) == 1 {
		r.stay = append(r.stay, units[0])
		return
	}
	r.slowReprieve(units[:len(units)/2])
	r.slowReprieve(units[len(units)/2:])
}
