package api

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/step"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// This file answers money from what the overview and the list of nodes have already asked for: no question of its own.
//
// Prices are an hour's, in the currency of meta; a node without a price counts as unpriced and adds nothing.

// maxBlockers is how many blockers are listed: the dearest, since these are the ones to do something about.
const maxBlockers = 100

// money answers money.
func (a *API) money(r *request) (any, error) {
	g, at, err := a.glance(r)
	if err != nil {
		return nil, err
	}
	out := v1alpha1.Money{At: at, Groups: []v1alpha1.MoneyOfGroup{}, Reasons: []v1alpha1.NodesOfReason{}, Blockers: []v1alpha1.Blocker{}, Bought: a.bought()}
	s := g.Nodes.ScaleDown
	// Without scale-down nothing says why a node stays, which is what money is sorted by.
	if s == nil {
		return out, nil
	}
	if sum := moneySum(g); sum != nil {
		out.MoneySum = *sum
	}
	// What a node of a group costs is the group's; what its nodes cost is the sum of theirs, which may differ after a change
	// of prices.
	price := map[string]float64{}
	for i := range g.groups {
		price[g.groups[i].ID] = g.groups[i].Price
	}
	for _, of := range s.Groups {
		out.Groups = append(out.Groups, v1alpha1.MoneyOfGroup{Group: of.Group, Nodes: of.Nodes, Price: v1alpha1.Price(of.Price), NodePrice: v1alpha1.Price(price[of.Group]),
			Removable: v1alpha1.Price(of.Candidates.Price), Leaving: v1alpha1.Price(of.Leaving.Price),
			RemovableNodes: of.Candidates.Nodes, LeavingNodes: of.Leaving.Nodes})
	}
	out.Reasons = nodesOfReasons(r.viewer, s.Reasons)
	// Both answers are of the same tick, though not of the same Step: a node may have come between them.
	rows, _, err := a.nodeRows(r)
	if err != nil {
		return nil, err
	}
	// These are the only names of pods in the answer beside the examples of reasons, which nodesOfReasons has cut.
	out.Blockers, out.HiddenBlockers = blockers(r.viewer, rows)
	return out, nil
}

// blockers returns the pods that keep nodes, by falling price, and how many may not be named. A node that several pods keep
// is listed with the first that was found to keep it; its drawer has the others.
func blockers(v *viewer, rows []explain.NodeRow) (out []v1alpha1.Blocker, hidden int) {
	out = []v1alpha1.Blocker{}
	for i := range rows {
		row := &rows[i]
		switch {
		// Only a pod keeps a node that could otherwise go; limits and minimum sizes are no pod's doing.
		case row.State != explain.NodeStays || row.Pod == "":
		case v.pod(row.Pod) == "":
			hidden++
		default:
			out = append(out, v1alpha1.Blocker{Pod: row.Pod, Node: row.Node, Group: row.Group, Reason: string(row.Reason), Price: v1alpha1.Price(row.Price)})
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.Blocker) int {
		return cmp.Or(cmp.Compare(b.Price, a.Price), strings.Compare(a.Node, b.Node))
	})
	return out[:min(len(out), maxBlockers)], hidden
}

// bought adds up the scale-ups of the ledger that had an alternative with a price, or of which it is proved what they cost at
// least, in O(decisions kept); nil without any. Of an order of fewer nodes than were chosen, their share counts, and
// nothing of one that failed.
func (a *API) bought() *v1alpha1.Bought {
	// One choice may be ordered in several parts, each a decision of its own: they share the choice, which tells them apart
	// from others.
	ordered := map[*autoscaler.Choice]int{}
	var choices []*autoscaler.Choice // in the order of the ledger
	out, failures := &v1alpha1.Bought{}, failedOrders{}
	scan(a.opt.Ledger, func(d *step.Decision) bool {
		if failures.of(d) {
			return true
		}
		if c := d.Choice; d.Kind == step.ScaledUp && c != nil && (c.Next != nil || c.LowerBound > 0) && c.Nodes > 0 {
			if ordered[d.Choice] == 0 {
				choices = append(choices, d.Choice)
			}
			ordered[d.Choice] += d.Nodes
			out.Since = d.Time.UTC() // the oldest comes last
		}
		return true
	})
	// Sums of floating-point numbers depend on their order: that of the ledger is the same for all who ask.
	for _, c := range choices {
		share := float64(min(ordered[c], c.Nodes)) / float64(c.Nodes)
		if c.Next != nil {
			out.Orders++
			out.Chosen += v1alpha1.Price(share * c.Price)
			// Both bounds of an alternative are from below: the higher one says more.
			out.Next += v1alpha1.Price(share * max(c.Next.Price, c.LowerBound))
			out.Dearest += v1alpha1.Price(share * max(c.Dearest.Price, c.LowerBound))
		}
		if c.LowerBound > 0 {
			out.Bounded++
			out.BoundedChosen += v1alpha1.Price(share * c.Price)
			out.LowerBound += v1alpha1.Price(share * c.LowerBound)
		}
	}
	if len(choices) == 0 {
		return nil
	}
	return out
}

// failedOrders are the failures that were read from the ledger, newest first, and whose orders come further back: how many
// there are by group and number of nodes.
type failedOrders map[failedOrder]int

type failedOrder struct {
	group string
	nodes int
}

// of reports whether a decision is an order that came to nothing. It must be called with each decision, the newest
// first. A failure names no order: it is taken to be of the newest one before it of as many nodes of its group. Where
// two such orders were under way at once, it may have been the other, of which as many nodes were bought.
func (f failedOrders) of(d *step.Decision) bool {
	order := failedOrder{d.Group, d.Nodes}
	switch d.Kind {
	case step.ScaleUpFailed, step.ScaleUpUnanswered:
		if d.Nodes > 0 { // otherwise instances failed, of an order that was taken
			f[order]++
		}
	case step.ScaledUp:
		if f[order] > 0 {
			f[order]--
			return true
		}
	}
	return false
}
