package core

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle/candidates"
	"github.com/berthproject/berth/core/lifecycle/nodestatus"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/record"
	"github.com/berthproject/berth/core/step"
)

// This file commits what still holds of a plan.

// planMade has the mode commit a plan that may be.
func (c *Core) planMade(in step.PlanMade) {
	if c.cfg.Autoscale != nil && c.scale.planning.PlanMade(c.turn, in.Plan) {
		c.mode.commitPlan(in.Plan)
	}
}

// commitPlan commits what still holds of a plan.
func (c *Core) commitPlan(plan *autoscaler.Plan) {
	before := len(c.turn.Ready.ScaleUps)
	c.headroom.WholePlanned(c.turn, plan.Whole && c.scale.groups.HasRoom(c.turn, plan.ScaleUps))
	for i := range plan.Joins {
		c.join(&plan.Joins[i])
	}
	c.scale.deletions.Recall(c.turn, plan.Recalls, c.whyRecalled)
	kept := map[types.UID]bool{}
	for i := range plan.Recalls {
		for _, uid := range plan.Recalls[i].Pods {
			kept[uid] = true
		}
	}
	for i := range plan.ScaleUps {
		helped := c.commitScaleUp(&plan.ScaleUps[i])
		if !c.reservation.AnyAsks() {
			continue
		}
		for _, uid := range helped {
			kept[uid] = true
		}
	}
	c.answerAsking(plan, kept)
	for _, x := range plan.NoHelp {
		for _, uid := range x.Pods {
			if !c.reservation.Asks(uid) { // answerAsking has answered who asks
				c.reservation.Free(c.turn, uid) // what is coming doesn't help it any more
			}
		}
	}
	for _, x := range c.mayCancel(plan) {
		c.reservation.Cancelled(x.Group, c.scale.groups.Cancel(c.turn, x.Group, min(x.Nodes, c.reservation.Spare(x.Group))))
	}
	if n := plan.Unplanned; n > 0 {
		c.turn.Decide(step.Decision{Kind: step.PlanCut, Reason: fmt.Sprintf("the plan ran out of time; %d pod(s) are left to the next plan", n)})
		if len(c.turn.Ready.ScaleUps) > before || len(plan.Recalls) > 0 { // else the next would be no other
			c.scale.planning.Retry(c.turn.Now)
		}
	}
	c.holdBack(plan)
	c.reportNoHelp(plan)
	if !c.cfg.Autoscale.DisableScaleDown {
		c.scale.staying.CommitPlan(c.turn, plan)
	}
	// With --scale-down-enabled=false a plan has no removals, and what candidates there
	// were before a restart are needed.
	due := withConsolidation(c.commitConsolidation(plan), c.scale.candidates.CommitPlan(c.turn, plan))
	waiting := slices.DeleteFunc(slices.Clone(due), func(d candidates.Due) bool {
		_, leaves := c.scale.deletions.Describe(d.Node)
		return leaves
	})
	c.scale.deletions.Begin(c.turn, c.withinNodeBudgets(due))
	c.noteDue(waiting)
	c.tellLimits(plan)
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

// noteDue takes note, of nodes that waited though their time had come, which have begun to go
// now and what keeps the others.
func (c *Core) noteDue(due []candidates.Due) {
	for i := range due {
		n := c.state.NodeByName(due[i].Node)
		if n == nil {
			continue
		}
		switch at := c.scale.nodes.Of(c.turn.Now, n, due[i].Removal); at.State {
		case nodestatus.Leaving:
			c.scale.candidates.Begun(c.turn, n.Name)
		case nodestatus.Candidate:
			c.scale.candidates.Delayed(n.Name, at.Reason)
		}
	}
}

// tellLimits has an event of the status ConfigMap written when a plan is the first to find that
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
	c.scale.consolidation.Grew(c.turn.Now)
	c.reservation.Ordered(c.turn, up.Group, growth.Bins)
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
// those for which it hasn't been reported yet.
func (c *Core) reportNoHelp(plan *autoscaler.Plan) {
	c.headroom.Planned()
	why := map[types.UID]string{}
	var items []*queue.Item
	for _, n := range plan.NoHelp {
		reasons := strings.Join(n.Reasons, ", ")
		for _, uid := range n.Pods {
			switch p := c.stillPending(uid); {
			case p == nil:
			case p.Parsed.StandsIn():
				c.headroom.NoHelp(p.Parsed, reasons)
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
	s.launches.Held(c.turn.Now, groupIDs(c.state), s.groups.Coming(c.turn))
}

// groupIDs returns the node groups of a state, by ID.
func groupIDs(s *cluster.State) (out []string) {
	for _, g := range s.Groups() {
		out = append(out, g.ID)
	}
	return out
}
