package core

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/record"
	"github.com/berthproject/berth/core/weighing"
)

// This file gathers what the costs of core/weighing are made of: what pods are worth, how
// long victims have run, and what a node that a plan proposes costs each of its pods.

// worth returns what an hour of a pod's requests is worth, as the price expander has it.
func (c *Core) worth(pod *cluster.Pod) float64 { return expander.Worth(pod) }

// preemptionCost returns what it costs that victims leave a node; "" for several.
func (c *Core) preemptionCost(node string, victims *framework.Victims, costs *weighing.Costs) *weighing.Preemption {
	out := &weighing.Preemption{Node: node, Violations: victims.Violations}
	for _, v := range victims.Pods {
		out.Add(costs, c.worth(v), c.ran(v), v.Priority)
	}
	return out
}

// ran returns for how long a pod has run, by the API server's clock; 0 before its kubelet
// has seen it.
func (c *Core) ran(pod *cluster.Pod) time.Duration {
	if at := pod.Object.Status.StartTime; at != nil {
		return c.turn.ServerNow().Sub(at.Time)
	}
	return 0
}

// binCosts are what a proposed node costs its pods, and what it costs them to preempt.
type binCosts struct {
	nodes         []*weighing.Node // by pod
	preempt, node float64          // of all pods
	priced        bool             // the price of the node is known
	why           string           // they preempt, if they do
}

// preemptingIsCheaper reports whether the pods preempt rather than have the node. One of which
// the price isn't known can't be compared.
func (x *binCosts) preemptingIsCheaper() bool {
	x.why = "preempting costs less than the node"
	if !x.priced {
		x.why = "the price of its node group is unknown"
		return true
	}
	return x.preempt < x.node
}

// costsOf returns what a node of a group costs the pods that it is proposed for; nil unless
// all of them ask and are weighed by Cheapest: what one of them needs anyway costs the
// others nothing.
func (c *Core) costsOf(group string, bin []types.UID) *binCosts {
	g := c.state.Group(group)
	if g == nil {
		return nil
	}
	total := 0.0
	for _, uid := range bin {
		if !c.reservation.Asks(uid) || c.policyOf(c.pods[uid].Parsed) != weighing.Cheapest {
			return nil
		}
		total += c.worth(c.pods[uid].Parsed)
	}
	out := &binCosts{priced: g.Price > 0}
	launch := c.scale.launches.Times(group).Median
	for _, uid := range bin {
		p := c.pods[uid]
		costs := &c.sched.Profile(p.Parsed).Weighing.Costs
		n := costs.NewNode(group, g.Price, share(c.worth(p.Parsed), total, len(bin)), c.worth(p.Parsed), launch)
		out.nodes = append(out.nodes, n)
		out.node += n.Cost
		out.preempt += p.Weighing.Result.Preempt.Cost
	}
	return out
}

// share returns a pod's part of a node that pods of a total worth have together; pods that
// are worth nothing have equal parts.
func share(worth, total float64, pods int) float64 {
	if total <= 0 {
		return 1 / float64(pods)
	}
	return worth / total
}

// bought records the places on ordered nodes that pods were given.
func (c *Core) bought(group string, bins [][]types.UID) {
	price := 0.0
	if g := c.state.Group(group); g != nil {
		price = g.Price
	}
	for _, bin := range bins {
		total := 0.0
		if slices.ContainsFunc(bin, func(uid types.UID) bool { return c.pods[uid].Weighing.Asked }) {
			for _, uid := range bin {
				total += c.worth(c.pods[uid].Parsed)
			}
		}
		for _, uid := range bin {
			p := c.pods[uid]
			if !p.Weighing.Asked { // nothing is weighed for it, and there may be very many
				p.Weighing.Since = c.turn.Now
				continue
			}
			c.given(uid, &weighing.Node{Group: group, Price: price, Share: share(c.worth(p.Parsed), total, len(bin))}, weighing.Buys)
		}
	}
}

// groupNode returns what the nodes cost a pod group that a plan has for it: their price, all of which is the
// group's, and the waiting of all members; known is false when the price of one isn't.
func (x gangs) groupNode(g *autoscaler.GangPlan, ups []autoscaler.ScaleUp, members []*record.Pod) (node *weighing.Node, known bool) {
	c, worth := x.c, 0.0
	for _, p := range members {
		worth += c.worth(p.Parsed)
	}
	group, most, share, launch := "", 0, 0.0, time.Duration(0)
	for i := range ups {
		if ups[i].Nodes > most {
			group, most = ups[i].Group, ups[i].Nodes
		}
		share, launch = 1, max(launch, c.scale.launches.Times(ups[i].Group).Median)
	}
	node = c.sched.Profile(members[0].Parsed).Weighing.Costs.NewNode(group, g.Price, share, worth, launch)
	node.Nodes = g.Nodes
	return node, g.Nodes == 0 || g.Price > 0
}
