package core

import (
	"cmp"
	"slices"

	"github.com/berthproject/berth/core/autoscaler/nodebudget"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle/candidates"
)

// This file holds node budgets to the nodes whose time has come. They are asked when removals
// begin: one that has begun goes on when a budget becomes active.

// withinNodeBudgets leaves out the candidates that a node budget keeps for now, in O(nodes) as
// long as a budget is active and a candidate's time has come. Those that can't begin anyway don't
// count, and empty nodes count first, as they begin first: others don't wait for nothing.
func (c *Core) withinNodeBudgets(due []candidates.Due) (out []candidates.Due) {
	c.scale.nodes.SetOverBudget(nil)
	budgets := c.cfg.Autoscale.NodeBudgets
	if len(budgets) == 0 || len(due) == 0 {
		return due
	}
	counter := c.countNodes(budgets)
	if counter == nil {
		return due
	}
	var over map[string]string
	slices.SortStableFunc(due, func(a, b candidates.Due) int { return cmp.Compare(min(len(a.Homes), 1), min(len(b.Homes), 1)) })
	for _, d := range due {
		if len(d.WaitsFor) > 0 {
			continue
		}
		n := c.state.NodeByName(d.Node)
		if why := counter.Remove(n.Group, c.reasonToGo(&d), c.availabilityForBudgets(n.NodeInfo)); why != "" {
			if over == nil {
				over = map[string]string{}
			}
			over[d.Node] = why
			continue
		}
		out = append(out, d)
	}
	c.scale.nodes.SetOverBudget(over)
	return out
}

// countNodes counts the nodes of all groups for the budgets that are active now; nil when none
// is.
func (c *Core) countNodes(budgets []nodebudget.Budget) *nodebudget.Counter {
	counter := nodebudget.NewCounter(budgets, c.turn.Now)
	if counter == nil {
		return nil
	}
	c.state.Nodes(func(n *cluster.Node) { counter.Add(n.Group, c.availabilityForBudgets(n.NodeInfo)) })
	c.scale.deletions.EachUnfinished(func(n *cluster.NodeInfo) { counter.Add(n.Group, nodebudget.Unavailable) })
	return counter
}

// availabilityForBudgets reports whether a group is short of a node: it is on its way out, or it isn't
// ready and was created too long ago to be starting.
func (c *Core) availabilityForBudgets(n *cluster.NodeInfo) nodebudget.Availability {
	late := !n.Ready() && c.cfg.Autoscale.Readiness.Late(n, c.state.Group(n.Group), c.turn.ServerNow())
	return nodebudget.Availability(scaledown.Leaving(n) || late)
}

// reasonToGo says which reason a candidate goes for.
func (c *Core) reasonToGo(d *candidates.Due) nodebudget.Reason {
	switch {
	case c.scale.consolidation.Has(d.Node):
		return nodebudget.Consolidation
	case d.Empty():
		return nodebudget.Empty
	}
	return nodebudget.Underutilized
}
