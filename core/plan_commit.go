package core

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle/candidates"
	"github.com/berthproject/berth/core/lifecycle/nodestatus"
	"github.com/berthproject/berth/core/lifecycle/podgroups"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/record"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/core/weighing"
)

// This file commits what still holds of a plan. commitPlan says which machines hear of it, in
// which order, and why.

// planMade has the mode commit a plan that may be.
func (c *Core) planMade(in step.PlanMade) {
	if c.cfg.Autoscale != nil && c.scale.planning.PlanMade(c.turn, in.Plan) {
		c.mode.commitPlan(in.Plan)
	}
}

// commitPlan commits what still holds of a plan. This is the order in which machines hear of it,
// and why each comes before the next:
//
//  0. reservation: places end whose nodes come no more, by what the provider has told in this Step.
//     What the plan builds on them must not be begun.
//  1. headroom: whether all that the plan buys can be ordered is asked before anything is. The
//     pods of a request that is booked now are queued, so that what follows finds them waiting.
//     Which pod groups' purchases can't be ordered in full any more is asked as well: of these
//     nothing is done. Places end of those that are planned anew.
//  2. reservation: pods get the places on nodes that are coming. What is free goes before what
//     has to be kept or bought: a pod that has got something doesn't count for the next.
//  3. nodedeletion: nodes on their way out stay for pods that still wait.
//  4. nodegroups, consolidation and reservation, for each order: its nodes are ordered for the
//     pods that still wait, which get places on them.
//  5. reservation: pods that asked for a place are answered when it is known who has got
//     something; after that places end of which the plan says that they help no more. Both leave
//     nodes that are coming without a pod.
//  6. nodegroups and reservation: of these nodes orders are cancelled.
//  7. planning and launching: a plan that was cut short is followed by another, if it has begun
//     anything; launch control counts all orders, and remembers whom it has held back.
//  8. reporting and headroom: people hear of pods that no group helps and that have no node still.
//  9. The removals (commitRemovals): what is bought comes first, since a consolidation is begun
//     only by a plan that buys nothing.
//  10. Events about the limits of the cluster, which nothing depends on.
func (c *Core) commitPlan(plan *autoscaler.Plan) {
	before := len(c.turn.Ready.ScaleUps)
	if c.scale.groupsTold && c.reservation.Waits() {
		releaseLost(c) // 0
	}
	c.headroom.WholePlanned(c.turn, plan.Whole && c.scale.groups.HasRoom(c.turn, plan.ScaleUps)) // 1
	outdated := gangs{c}.outdated(plan)
	weighed := gangs{c}.weighedOf(plan, outdated)
	c.scale.survey = nil // what is ordered changes it
	gangs{c}.endPlaces(plan, outdated)
	for i := range plan.Joins { // 2
		if !outdated[plan.Joins[i].Gang] {
			c.join(&plan.Joins[i])
		}
	}
	c.scale.deletions.Recall(c.turn, plan.Recalls, c.whyRecalled) // 3
	helped := c.commitScaleUps(plan, outdated)                    // 4
	gangs{c}.decide(plan, outdated, weighed)
	c.endPlaces(plan, helped)             // 5
	for _, x := range c.mayCancel(plan) { // 6
		c.reservation.OrderCancelled(x.Group, c.scale.groups.Cancel(c.turn, x.Group, min(x.Nodes, c.reservation.Spare(x.Group))))
	}
	c.noteCut(plan, len(c.turn.Ready.ScaleUps) > before || len(plan.Recalls) > 0) // 7
	c.holdBack(plan)
	c.reportNoHelp(plan)   // 8
	c.commitRemovals(plan) // 9
	c.tellLimits(plan)     // 10
}

// commitScaleUps orders what a plan buys, but for pod groups for which it is outdated. It returns the pods that need nothing else, those for
// which nodes on their way out stay included; of those with a place on an order only while pods
// ask for places.
func (c *Core) commitScaleUps(plan *autoscaler.Plan, outdated map[string]bool) (helped map[types.UID]bool) {
	if len(plan.Recalls)+len(plan.ScaleUps) == 0 {
		return nil
	}
	helped = map[types.UID]bool{}
	for i := range plan.Recalls {
		for _, uid := range plan.Recalls[i].Pods {
			helped[uid] = true
		}
	}
	for i := range plan.ScaleUps {
		if outdated[plan.ScaleUps[i].Gang] {
			continue
		}
		placed := c.commitScaleUp(&plan.ScaleUps[i])
		if !c.reservation.AnyAsks() {
			continue
		}
		for _, uid := range placed {
			helped[uid] = true
		}
	}
	return helped
}

// endPlaces answers the pods that asked for a place, and ends the places of others that what is
// coming doesn't help any more.
func (c *Core) endPlaces(plan *autoscaler.Plan, helped map[types.UID]bool) {
	c.answerAsking(plan, helped)
	for _, x := range plan.NoHelp {
		for _, uid := range x.Pods {
			if !c.reservation.Asks(uid) { // answerAsking has answered who asks
				c.reservation.ReleasePod(c.turn, uid)
			}
		}
	}
}

// noteCut enters into the ledger that a plan ran out of time. Another is made at once if this one
// has begun anything: otherwise the next would be the same.
func (c *Core) noteCut(plan *autoscaler.Plan, begun bool) {
	if plan.Unplanned == 0 {
		return
	}
	c.turn.Decide(step.Decision{Kind: step.PlanCut, Reason: fmt.Sprintf("the plan ran out of time; %d pod(s) are left to the next plan", plan.Unplanned)})
	if begun {
		c.scale.planning.Retry(c.turn.Now)
	}
}

// commitRemovals begins what still holds of the removals of a plan. Machines hear of them in this
// order:
//
//  1. keptnodes: why nodes stay. The ledger has that before what becomes of candidates.
//  2. consolidation: what it is due for, or whether it begins.
//  3. candidates: which nodes could go, and which of them are due. With
//     --scale-down-enabled=false a plan has no removals, and what candidates there were before a
//     restart are needed.
//  4. nodedeletion: those that are due and that no node budget keeps begin to go, those of a
//     consolidation first.
//  5. candidates: which have begun, and what keeps the others (nodestatus), which is known only
//     now.
func (c *Core) commitRemovals(plan *autoscaler.Plan) {
	if !c.cfg.Autoscale.DisableScaleDown {
		c.scale.keptNodes.CommitPlan(c.turn, plan) // 1
	}
	consolidated := c.commitConsolidation(plan)                                         // 2
	due := withConsolidation(consolidated, c.scale.candidates.CommitPlan(c.turn, plan)) // 3
	waiting := slices.DeleteFunc(slices.Clone(due), func(d candidates.Due) bool {
		_, leaves := c.scale.deletions.Describe(d.Node)
		return leaves
	})
	c.scale.deletions.Begin(c.turn, c.withinNodeBudgets(due)) // 4
	c.noteDue(waiting)                                        // 5
}

// whyRecalled returns why a node on its way out is to stay, "" if none of the pods waits any
// more for which it would.
func (c *Core) whyRecalled(r *autoscaler.Recall) string {
	i := slices.IndexFunc(r.Pods, c.waits)
	switch {
	case i < 0:
		return ""
	case c.pods[r.Pods[i]].Parsed.StandsIn():
		return "expected pods fit on it and would otherwise need a new node"
	}
	return fmt.Sprintf("pending pod %s fits on it and would otherwise need a new node", c.pods[r.Pods[i]].Parsed.Name())
}

// noteDue records for each candidate that was due whether its removal has begun now, and
// otherwise what keeps it.
func (c *Core) noteDue(due []candidates.Due) {
	for i := range due {
		n := c.state.NodeByName(due[i].Node)
		if n == nil {
			continue
		}
		switch at := c.scale.nodes.Of(c.turn.Now, n, due[i].Removal); at.State {
		case nodestatus.Leaving:
			c.scale.candidates.RemovalBegun(c.turn, n.Name)
		case nodestatus.Candidate:
			c.scale.candidates.RemovalDelayed(n.Name, at.Reason)
		}
	}
}

// tellLimits emits an event about the status ConfigMap when a plan is the first to find that
// the cluster is too sick to be resized, or that it has as many nodes as it may.
func (c *Core) tellLimits(plan *autoscaler.Plan) {
	sick := plan.Sick != ""
	if sick && !c.scale.toldSick {
		c.turn.Emit(step.StatusEvent("", "ClusterUnhealthy", "Planning", "Cluster is unhealthy").AsWarning())
	}
	full := slices.ContainsFunc(plan.NoHelp, func(n autoscaler.NoHelp) bool {
		return slices.ContainsFunc(n.Reasons, func(why string) bool { return strings.HasSuffix(why, " "+scaleup.MaxNodesTotal) })
	})
	if full && !c.scale.toldFull {
		c.turn.Emit(step.StatusEvent("", "MaxNodesTotalReached", "ScalingUp", fmt.Sprintf("Max total nodes in cluster reached: %d", c.cfg.Autoscale.Limits.MaxNodesTotal)).AsWarning())
	}
	c.scale.toldSick, c.scale.toldFull = sick, full
}

// mayCancel returns what of the nodes that nobody needs may be given up: none where nodes
// are never removed, nor where another scheduler may already have put a pod on one of them.
func (c *Core) mayCancel(plan *autoscaler.Plan) []autoscaler.GroupNodes {
	if c.cfg.Autoscale.DisableScaleDown || c.cfg.ExternalScheduler {
		return nil
	}
	return plan.Unneeded
}

// commitScaleUp orders the nodes of a proposal for those of its pods that have no node
// still and don't rather preempt, and emits TriggeredScaleUp for each that has a place on
// what is ordered. It returns these.
func (c *Core) commitScaleUp(up *autoscaler.ScaleUp) (helped []types.UID) {
	if up = c.decline(up); up.Nodes == 0 {
		return nil
	}
	growth, ok := c.scale.groups.CommitScaleUp(c.turn, up, c.waits)
	if !ok {
		return nil
	}
	c.scale.consolidation.NodesOrdered(c.turn.Now)
	c.reservation.NodesOrdered(c.turn, up.Group, growth.Bins, growth.Spare)
	c.bought(up.Group, growth.Bins)
	asked := c.scale.groups.LastAsked(up.Group)
	for _, uid := range up.Pods {
		switch p := c.stillPending(uid); {
		case p == nil || p.Parsed.StandsIn():
		case growth.Without[uid]:
			c.reporting.ScaleUpOutdated(&p.Reports)
		default:
			helped = append(helped, uid)
			p.Asked = asked
			c.reporting.TriggeredScaleUp(c.turn, &p.Reports, p.Parsed.Object, growth.String())
		}
	}
	return helped
}

// reportNoHelp reports NotTriggeredScaleUp, with the reasons, for those pods that no node
// group would help and that have no node still, in the order in which they were queued: for
// those for which it hasn't been reported yet. A plan that is the last one again (scaleup.Memory)
// has nothing new to report, unless some of its pods stood in for others or weren't pending.
func (c *Core) reportNoHelp(plan *autoscaler.Plan) {
	c.headroom.PlanMade()
	if isSameList(plan.NoHelp, c.scale.reported) {
		return
	}
	why := map[types.UID]string{}
	var items []*queue.Item
	c.scale.reported = plan.NoHelp
	for _, n := range plan.NoHelp {
		reasons := strings.Join(n.Reasons, ", ")
		for _, uid := range n.Pods {
			c.scale.looked++
			switch p := c.stillPending(uid); {
			case p == nil:
				c.scale.reported = nil
			case p.Parsed.StandsIn():
				c.scale.reported = nil
				standIns{c}.noHelp(p.Parsed, reasons)
			case !p.Reports.SaysNoHelp(reasons):
				why[uid] = reasons
				items = append(items, c.queue.Get(uid))
			}
		}
	}
	slices.SortFunc(items, func(a, b *queue.Item) int { return cmp.Compare(a.Sequence(), b.Sequence()) })
	for _, item := range items {
		p := c.pods[item.Pod().UID]
		c.reporting.NotTriggeredScaleUp(c.turn, &p.Reports, p.Parsed.Object, why[p.Parsed.UID])
	}
}

// isSameList reports whether two lists are one in memory, and not empty.
func isSameList(a, b []autoscaler.NoHelp) bool {
	return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0]
}

// waits reports whether a pod has no node yet, and none that others are to leave for it.
func (c *Core) waits(uid types.UID) bool {
	p := c.stillPending(uid)
	return p != nil && !p.HasNodeToWaitFor(c.state)
}

// stillPending returns the record of a pod that has no node yet, nil for any other. Such a
// pod has an item in the queue.
func (c *Core) stillPending(uid types.UID) *record.Pod {
	if p := c.pods[uid]; p != nil && p.Node() == "" {
		return p
	}
	return nil
}

// holdBack has launch control remember, after a plan that found pods in need of nodes, which
// groups have no room for launches.
func (c *Core) holdBack(plan *autoscaler.Plan) {
	s := &c.scale
	if !s.launches.Limits() || len(plan.NoHelp)+len(plan.ScaleUps) == 0 {
		return
	}
	s.launches.NodesHeldBack(c.turn.Now, groupIDs(c.state), s.groups.Coming(c.turn))
}

// groupIDs returns the node groups of a state, by ID.
func groupIDs(s *cluster.State) (out []string) {
	for _, g := range s.Groups() {
		out = append(out, g.ID)
	}
	return out
}

// outdated returns the pod groups, as namespace/name, for which what a plan has holds no more: too many
// members are gone or have lost their places, or not all nodes can be ordered; or members are to be on nodes that are
// bought for another such group.
func (x gangs) outdated(plan *autoscaler.Plan) map[string]bool {
	if len(plan.Gangs) == 0 {
		return nil
	}
	out, planned := map[string]bool{}, x.planned(plan)
	var accepted []autoscaler.ScaleUp
	for i := range plan.Gangs {
		g := &plan.Gangs[i]
		all := append(accepted[:len(accepted):len(accepted)], planned.ScaleUps(g.Gang)...)
		out[g.Gang] = g.Placed-planned.Missing(g) < x.need(g) || !x.c.scale.groups.HasRoom(x.c.turn, all) || x.declines(g, planned.ScaleUps(g.Gang))
		for _, other := range planned.On(g.Gang) {
			out[g.Gang] = out[g.Gang] || out[other]
		}
		if out[g.Gang] {
			planned.OutOfDate()
		} else {
			accepted = all
		}
	}
	return out
}

// need returns how many members must have a place by what a plan has for a pod group: more than when it was begun if its
// object says so now or members on nodes are gone, and more than there are if there is no object. When
// others were bound meanwhile it is as many as before: they may be in another domain.
func (x gangs) need(g *autoscaler.GangPlan) int {
	key := cluster.PodGroupNamed(g.Gang)
	object := x.c.state.PodGroup(key)
	if object == nil {
		return math.MaxInt
	}
	return max(g.Need, podgroups.MinCount(object)-x.c.state.PlacedMembers(key))
}

// planned compares what a plan has for pod groups with what there is now.
func (x gangs) planned(plan *autoscaler.Plan) *podgroups.Planned {
	coming := map[string]int{}
	if len(plan.Joins) > 0 {
		for group, x := range x.c.survey() { // in any order: each is a node group's own
			coming[group] = x.Unregistered
		}
	}
	return podgroups.NewPlanned(plan, podgroups.Now{
		Places: x.c.reservation.Places(), Coming: coming, Waits: x.c.waits,
		HasNode: func(j *autoscaler.Join) bool { return hasNodeOf(x.c.state, j) },
		PlaceIn: func(uid types.UID) (string, bool) {
			place, has := x.c.reservation.Of(uid)
			return place.Group, has
		},
		GroupOf: func(uid types.UID) string {
			if p := x.c.pods[uid]; p != nil && p.Parsed.Group != nil {
				return p.Parsed.Group.String()
			}
			return ""
		},
	})
}

// endPlaces ends the places of the pod groups that a plan has planned anew.
func (x gangs) endPlaces(plan *autoscaler.Plan, outdated map[string]bool) {
	for i := range plan.Gangs {
		g := &plan.Gangs[i]
		if !g.Anew || outdated[g.Gang] && g.Placed > 0 {
			continue
		}
		if group := x.c.queue.Group(cluster.PodGroupNamed(g.Gang)); group != nil {
			for _, item := range group.Members() {
				x.c.reservation.ReleasePod(x.c.turn, item.Pod().UID)
			}
		}
	}
}

// decide enters into the ledger what plans have for pod groups, each time that it is something
// else.
func (x gangs) decide(plan *autoscaler.Plan, outdated map[string]bool, weighed map[string]*weighing.Result) {
	said := map[string]string{}
	for i := range plan.Gangs {
		g := &plan.Gangs[i]
		kind, why := step.GroupPlanned, g.String()
		switch {
		case outdated[g.Gang] && g.Placed > 0:
			kind, why = step.GroupNotPlanned, "the cluster has changed since the plan was begun, and it can't be carried out in full"
		case g.Placed == 0:
			kind = step.GroupNotPlanned
		}
		said[g.Gang] = why
		if x.c.scale.gangs[g.Gang] != why {
			x.c.turn.Decide(step.Decision{Kind: kind, PodGroup: g.Gang, Members: g.Placed, Nodes: g.Nodes, Reason: why, Weighed: weighed[g.Gang]})
		}
	}
	x.c.scale.gangs = said
}

// weighedOf returns, for the pod groups that asked for places and get some by a plan, how waiting compared with preemption
// and purchase. Call it before the places are given.
func (x gangs) weighedOf(plan *autoscaler.Plan, outdated map[string]bool) map[string]*weighing.Result {
	if len(plan.Gangs) == 0 || !x.c.reservation.AnyAsks() {
		return nil
	}
	out := map[string]*weighing.Result{}
	for i := range plan.Gangs {
		g := &plan.Gangs[i]
		if outdated[g.Gang] {
			continue
		}
		var ups []autoscaler.ScaleUp
		for _, up := range plan.ScaleUps {
			if up.Gang == g.Gang {
				ups = append(ups, up)
			}
		}
		out[g.Gang] = x.weighed(g, ups)
	}
	return out
}
