package scaleup

import (
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// Groups below their minimum grow to it, whether or not pods need the nodes
// (--enforce-node-group-min-size). Pods that are pending are placed on these nodes before
// any others are proposed.

// belowMinimum returns the groups that have to grow, by ID.
func (p *Packer) belowMinimum(req *autoscaler.Request) []*cluster.NodeGroup {
	if !req.Limits.EnforceMinSize {
		return nil
	}
	var out []*cluster.NodeGroup
	for _, g := range p.State.Groups() {
		if g.Target < g.Min {
			out = append(out, g)
		}
	}
	return out
}

// fillUp proposes nodes for groups below their minimum, as far as limits allow.
func (b *builder) fillUp(short []*cluster.NodeGroup) {
	for _, g := range short {
		m := b.models[g.ID]
		room, _ := b.headroom(g)
		nodes := min(room, g.Min-g.Target)
		if nodes <= 0 {
			continue
		}
		for range nodes {
			b.addNode(m, newNode(g, b.proposed.of(m)))
			b.add(m, 1)
		}
		b.plan.ScaleUps = append(b.plan.ScaleUps, autoscaler.ScaleUp{Group: g.ID, Nodes: nodes, Choice: &autoscaler.Choice{Plan: b.req.Number, By: autoscaler.ByMinimum}})
	}
}
