package core

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodebudget"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/lifecycle/candidates"
	"github.com/berthproject/berth/core/lifecycle/consolidation"
	"github.com/berthproject/berth/core/step"
)

// This file has the core's part in consolidations: it asks plans to look for one when nothing
// else goes on, orders its new nodes, and has its old ones be due as soon as they can go.

// consolidateRequest returns what asks a plan for a consolidation; nil when none is to be
// looked for: also while nodes are coming or going, since what the cluster will be isn't known
// then.
func (c *Core) consolidateRequest() *autoscaler.Consolidate {
	a := c.cfg.Autoscale
	if !a.Consolidation || !c.scale.consolidation.SearchDue(c.turn.Now) {
		return nil
	}
	if leaving, _ := c.scale.deletions.Counts(); leaving > 0 || scaleup.Launching(c.survey()) > 0 {
		return nil
	}
	out := &autoscaler.Consolidate{Threshold: a.ConsolidationThreshold}
	if counter := c.countNodes(a.NodeBudgets); counter != nil {
		out.Most = map[string]int{}
		for _, g := range c.state.Groups() {
			out.Most[g.ID] = counter.Room(g.ID, nodebudget.Consolidation)
		}
	}
	return out
}

// commitConsolidation commits what a plan proposes for consolidation, after its other proposals. It
// returns which nodes are due for one that is under way.
func (c *Core) commitConsolidation(plan *autoscaler.Plan) []candidates.Due {
	m := c.scale.consolidation
	due := m.CommitPlan(c.turn, plan)
	if !c.scale.lookedFor {
		return due
	}
	c.scale.lookedFor = false
	x := plan.Consolidation
	if x == nil || len(c.turn.Ready.ScaleUps) > 0 || !consolidation.StillStands(c.state, x) || !c.scale.groups.HasRoom(c.turn, x.ScaleUps) {
		m.SearchEnded(c.turn.Now)
		return due
	}
	c.turn.Decide(step.Decision{Kind: step.Consolidates, Nodes: len(x.Nodes), Reason: describeConsolidation(x)})
	for i := range x.ScaleUps {
		c.scale.groups.CommitScaleUp(c.turn, &x.ScaleUps[i], func(types.UID) bool { return false })
	}
	m.Begin(c.turn, x)
	return due
}

// describeConsolidation says what goes, what comes, and what that saves.
func describeConsolidation(x *autoscaler.Consolidation) string {
	var bought []string
	for _, up := range x.ScaleUps {
		bought = append(bought, fmt.Sprintf("%d of %s", up.Nodes, up.Group))
	}
	if bought == nil {
		bought = []string{"none"}
	}
	return fmt.Sprintf("replacing %s at $%.2f/h by %s at $%.2f/h; %d pod(s) are moved, and the share of the cluster's cost that is saved is %.2f times the share of its pods that is moved (--consolidation-threshold)",
		strings.Join(x.Nodes, ", "), x.Before, strings.Join(bought, " and "), x.After, x.Pods, x.Score)
}

// withConsolidation returns all nodes whose time has come, those of a consolidation first, each
// once.
func withConsolidation(consolidated, others []candidates.Due) []candidates.Due {
	if consolidated == nil {
		return others
	}
	return append(consolidated, slices.DeleteFunc(others, func(d candidates.Due) bool {
		return slices.ContainsFunc(consolidated, func(o candidates.Due) bool { return o.Node == d.Node })
	})...)
}
