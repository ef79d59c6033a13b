package scaleup

import (
	"maps"
	"reflect"
	"slices"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// This file remembers the last plan if it proposed nothing: pods may wait for days at a limit or for
// a missing node group, and a plan is made every few seconds. The next plan is the same while the
// state is, and the request except for its time. Time changes nothing as long as no node is starting:
// such a node could become late.

// lastPlan is a plan that proposed nothing, and what it was made for.
type lastPlan struct {
	// epoch and head are the position of the state that was planned on. Any change since
	// then makes the plan worthless.
	epoch cluster.Epoch
	head  cluster.Seq
	// req is compared with the next request (sameRequest); its slices and maps are copies.
	req   autoscaler.Request
	plan  autoscaler.Plan
	asked int // how many questions it asked the stopwatch
}

// recall fills in a plan as the last was, and reports whether it could: whether it would be
// that one again.
func (m *Memory) recall(s *cluster.State, req *autoscaler.Request, plan *autoscaler.Plan, q *autoscaler.Questions) bool {
	l := m.last
	if l == nil || l.epoch != s.Epoch() || l.head != s.Head() || !sameRequest(&l.req, req) || !q.Skip(l.asked) {
		return false
	}
	plan.Sick, plan.NoHelp, plan.Packed, plan.Gangs = l.plan.Sick, l.plan.NoHelp, l.plan.Packed, l.plan.Gangs
	return true
}

// remember keeps a plan that wasn't cut short, if the next may be the same: it has nothing to
// propose, asked nobody outside, and left no domain for a gang to the next.
func (m *Memory) remember(s *cluster.State, req *autoscaler.Request, plan *autoscaler.Plan, asked int) {
	if len(req.Pending)+len(req.Gangs) == 0 || len(req.Whole)+len(req.Places)+len(req.Spare)+len(req.Recallable) > 0 ||
		len(plan.ScaleUps)+len(plan.Recalls)+len(plan.Answers)+plan.Covered+plan.Unplanned+len(plan.Fitting) > 0 ||
		slices.ContainsFunc(plan.Gangs, leavesDomains) || anyStarting(s, req) {
		return
	}
	m.last = &lastPlan{epoch: s.Epoch(), head: s.Head(), req: *req, plan: *plan, asked: asked}
	kept := &m.last.req // whoever made the request may change it
	kept.Pending, kept.Gangs, kept.NotFor, kept.Conditions = slices.Clone(kept.Pending), slices.Clone(kept.Gangs), maps.Clone(kept.NotFor), maps.Clone(kept.Conditions)
}

// leavesDomains reports whether a plan hasn't looked at all domains for a gang: the next begins with others.
func leavesDomains(g autoscaler.GangPlan) bool {
	return slices.ContainsFunc(g.Tried, func(o autoscaler.GangOption) bool { return o.Why == notLookedAt })
}

// anyStarting reports whether a node isn't usable yet, or waits for a CSI driver or devices, and isn't late.
func anyStarting(s *cluster.State, req *autoscaler.Request) (starting bool) {
	p := newPromises(s, req.Conditions, &req.Readiness, req.ServerNow)
	notLate(s, &req.Readiness, req.ServerNow, func(n *cluster.Node) { starting = starting || p.starting(n) })
	return starting
}

// sameRequest reports whether two requests differ in nothing but their numbers and times, and
// whom they ask about for removal. Requests with Whole, Places, Spare or Recallable are never
// the same.
func sameRequest(a, b *autoscaler.Request) bool {
	return len(b.Whole)+len(b.Places)+len(b.Spare)+len(b.Recallable) == 0 && !b.ServerNow.Before(a.ServerNow) &&
		slices.Equal(a.Pending, b.Pending) && slices.EqualFunc(a.Gangs, b.Gangs, sameGang) && maps.Equal(a.NotFor, b.NotFor) && maps.EqualFunc(a.Conditions, b.Conditions, sameCondition) &&
		reflect.DeepEqual(a.Limits, b.Limits) && reflect.DeepEqual(a.Readiness, b.Readiness) && reflect.DeepEqual(a.Balancing, b.Balancing)
}

// sameGang reports whether two gangs differ in nothing.
func sameGang(a, b autoscaler.Gang) bool {
	return a.Key == b.Key && a.MinCount == b.MinCount && slices.Equal(a.Topologies, b.Topologies) && slices.Equal(a.In, b.In) && slices.Equal(a.Members, b.Members)
}

// sameCondition reports whether two conditions of a group differ in nothing.
func sameCondition(a, b autoscaler.GroupCondition) bool {
	return a.BackingOff == b.BackingOff && a.Newest == b.Newest && a.LongUnregistered == b.LongUnregistered && a.Deleting == b.Deleting &&
		a.MaxLaunching == b.MaxLaunching && maps.Equal(a.Gone, b.Gone) && slices.Equal(a.Devices, b.Devices)
}
