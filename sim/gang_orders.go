package sim

import (
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle/podgroups"
	"github.com/berthproject/berth/core/step"
)

// This file checks what a Step orders for pod groups: all nodes that the plan has for one, or none; and that enough of
// its members have nodes or places once nodes are ordered for it. Neither depends on what goes wrong afterwards.

// checkGangOrders verifies the orders of a Step that was given plans.
func (w *World) checkGangOrders(in []step.Input, r *step.Ready) {
	for _, x := range in {
		if made, ok := x.(step.PlanMade); ok && made.Plan != nil && len(made.Plan.Gangs) > 0 && len(r.ScaleUps) > 0 {
			w.checkOrdersOf(made.Plan, r)
		}
	}
}

// checkOrdersOf verifies the orders of a plan. A Step's orders name no pod group: where others are planned for the
// same node group and not all of them are ordered, whose they are isn't known, and nothing is said about them.
func (w *World) checkOrdersOf(plan *autoscaler.Plan, r *step.Ready) {
	planned, ordered := map[string]int{}, map[string]int{}
	for i := range plan.ScaleUps {
		planned[plan.ScaleUps[i].Group] += plan.ScaleUps[i].Nodes
	}
	for i := range r.ScaleUps {
		ordered[r.ScaleUps[i].Group] += r.ScaleUps[i].Nodes
	}
	for i := range plan.Gangs {
		g := &plan.Gangs[i]
		all, some, own := true, false, true
		for k := range plan.ScaleUps {
			up := &plan.ScaleUps[k]
			if up.Gang != g.Gang {
				continue
			}
			all, some = all && ordered[up.Group] == planned[up.Group], some || ordered[up.Group] > 0
			own = own && planned[up.Group] == up.Nodes && ordered[up.Group] <= up.Nodes
		}
		switch {
		case !some:
		case all:
			w.checkMembersHavePlaces(g)
		case own:
			w.violation("some of the nodes that a plan has for pod group %s are ordered, and others aren't", g.Gang)
		}
	}
}

// checkMembersHavePlaces verifies that enough members of a group have nodes or places, now that nodes are ordered for it.
func (w *World) checkMembersHavePlaces(g *autoscaler.GangPlan) {
	key := cluster.PodGroupNamed(g.Gang)
	view := w.berth.core().View()
	object := view.State.PodGroup(key)
	if object == nil {
		w.violation("nodes are ordered for pod group %s, which doesn't exist", g.Gang)
		return
	}
	have := view.State.PlacedMembers(key)
	if waiting := view.Queue.Group(key); waiting != nil {
		for _, item := range waiting.Members() {
			if _, ok := view.Places.Of(item.Pod().UID); ok {
				have++
			}
		}
	}
	if need := podgroups.MinCount(object); have < need {
		w.violation("nodes are ordered for pod group %s, and only %d of the %d members that it needs have nodes or places", g.Gang, have, need)
	}
}
