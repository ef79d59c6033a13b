package api

import (
	"slices"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/explain"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// This file answers groups and groups/NAME, from one question for all groups: O(groups × what limits them), plus a
// look at each node for how many could go.
//
// Names of node groups, their sizes and prices are for every viewer. The options of an order count pods and don't
// name them.

// groupsView is what one question for node groups brings.
type groupsView struct {
	groups   []explain.GroupExplanation
	capacity map[string][]explain.NamedUse
	nodes    map[string]explain.NodesOfGroup
}

// groupsOf asks for all node groups, by name.
func (a *API) groupsOf(r *request) (*groupsView, time.Time, error) {
	x, at, err := a.questions.of(r.Context(), "groups", func(c *core.Core) (any, error) {
		v := c.View()
		x := &groupsView{groups: v.ExplainGroups(), capacity: map[string][]explain.NamedUse{}, nodes: map[string]explain.NodesOfGroup{}}
		for i := range x.groups {
			x.capacity[x.groups[i].Group] = v.GroupCapacity(x.groups[i].Group)
		}
		// Without an autoscaler there are no groups, and nothing is said of nodes.
		nodes, _ := v.ExplainNodes()
		for _, g := range nodes.Groups {
			x.nodes[g.Group] = g
		}
		return x, nil
	})
	if err != nil {
		return nil, at, err
	}
	return x.(*groupsView), at, nil
}

// groups answers groups, all of them by name: there are few enough for one page, so limit and continue aren't parameters.
func (a *API) groups(r *request) (any, error) {
	x, at, err := a.groupsOf(r)
	if err != nil {
		return nil, err
	}
	out := v1alpha1.GroupList{List: v1alpha1.List{At: at, Total: len(x.groups)}, Items: []v1alpha1.Group{}}
	for i := range x.groups {
		out.Items = append(out.Items, x.group(&x.groups[i]))
	}
	return out, nil
}

// group answers groups/NAME. A name may have slashes.
func (a *API) group(r *request) (any, error) {
	x, at, err := a.groupsOf(r)
	if err != nil {
		return nil, err
	}
	// Clusters have tens of groups, rarely hundreds: a search from the first on is as fast as any other.
	i := slices.IndexFunc(x.groups, func(g explain.GroupExplanation) bool { return g.Group == r.object })
	if i < 0 {
		names := make([]string, len(x.groups))
		for j := range x.groups {
			names[j] = x.groups[j].Group
		}
		return nil, noSuch("node group", r.object, names)
	}
	g := &x.groups[i]
	out := v1alpha1.GroupDetail{At: at, Group: x.group(g), Decisions: []v1alpha1.Decision{}}
	// Instances are the provider's names for machines that aren't nodes yet; no pod is on them.
	for _, m := range g.Instances {
		out.Instances = append(out.Instances, v1alpha1.Instance(m))
	}
	// The oldest first, as many as the ledger keeps for a group. Pods that an order was made for are cut by decision.
	for _, d := range a.opt.Ledger.OfGroup(r.object) {
		out.Decisions = append(out.Decisions, decision(r.viewer, &d, whole))
	}
	return out, nil
}

// group returns a group in one row. Room is how many nodes more may be ordered now; Limit says what holds at 0, and
// NextLimit what will hold first. Total and Removable are of nodes that the cluster has, not of those that are coming.
func (x *groupsView) group(g *explain.GroupExplanation) v1alpha1.Group {
	nodes := x.nodes[g.Group]
	out := v1alpha1.Group{
		Name: g.Group, Min: g.Min, Max: g.Max, Target: g.Target, Ready: g.Ready, Launching: g.Launching, Deleting: g.Deleting,
		Removable: nodes.Candidates.Nodes, Price: v1alpha1.Price(g.Price), Total: v1alpha1.Price(nodes.Price),
		Room: g.Room, Limit: g.Limit, NextLimit: g.NextLimit, TemplateError: g.TemplateError, MaxOrder: g.MaxOrder,
		Next: expectation(g.Next), LaunchControl: g.LaunchControl, Ordered: order(g.Ordered),
	}
	// Empty while the provider can't describe a node of the group; TemplateError then says why.
	for _, u := range x.capacity[g.Group] {
		out.Capacity = append(out.Capacity, v1alpha1.Amount{Resource: string(u.Name), Quantity: quantity(u.Name, u.Allocatable)})
	}
	if g.Backoff != nil {
		b := v1alpha1.Backoff(*g.Backoff)
		out.Backoff = &b
	}
	if l := g.Launches; l != nil {
		out.Launches = &v1alpha1.LaunchTimes{Launches: l.Launches, P50: seconds(l.MedianSeconds), P90: seconds(l.P90Seconds)}
	}
	// Why is the provider's message, word for word: it names what the provider would have needed.
	if f := g.Failed; f != nil {
		out.Failed = &v1alpha1.Failure{At: f.At, Nodes: f.Nodes, Why: f.Why}
	}
	return out
}

// order returns the last scale-up of a node group with the options that it was chosen from, nil for none. Wanted may be
// more than To minus From: a limit of the group or of the cluster has cut the order then. It is kept after the nodes have
// come, so that it can be asked what a node was bought for.
func order(o *explain.Order) *v1alpha1.Order {
	if o == nil {
		return nil
	}
	return &v1alpha1.Order{Group: o.Group, At: o.At.UTC(), From: o.From, To: o.To, Wanted: o.Wanted, Pods: o.Pods, Choice: choice(o.Choice, o.Group), Failed: o.Failed}
}

// choice returns how the group of an order was chosen, nil when nothing is known of that. Options are in the order of the
// plan, the chosen one among them.
func choice(c *autoscaler.Choice, group string) *v1alpha1.Choice {
	if c == nil {
		return nil
	}
	out := &v1alpha1.Choice{Plan: c.Plan, By: c.By, Unpriced: c.Unpriced, Nodes: c.Nodes, Price: v1alpha1.Price(c.Price), Next: alternative(c.Next), Dearest: alternative(c.Dearest), LowerBound: v1alpha1.Price(c.LowerBound)}
	chosen := c.Of(group)
	for i := range c.Options {
		o := &c.Options[i]
		// Wasted is the sum of two shares, of cpu and of memory, each from 0 to 1, as the expander least-waste adds them up;
		// the API has their mean.
		out.Options = append(out.Options, v1alpha1.Option{Group: o.Group, With: o.With, Nodes: o.Nodes, Pods: o.Pods, Unused: v1alpha1.Share(o.Wasted / 2), Price: v1alpha1.Price(o.Price), Chosen: o == chosen})
	}
	return out
}

// alternative returns an option that wasn't chosen, with its price an hour for all of its nodes; nil for none.
func alternative(a *autoscaler.Alternative) *v1alpha1.Alternative {
	if a == nil {
		return nil
	}
	return &v1alpha1.Alternative{Group: a.Group, Nodes: a.Nodes, Price: v1alpha1.Price(a.Price)}
}
