package scaleup

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// This file chooses among domains that need no purchase, by the placement scores of the scheduler: where a plan
// keeps places for a gang, the scheduler puts it. They don't compare domains that nodes are bought in. Each
// holds the whole gang then, and how full it is depends on the nodes that are bought: of these the expander
// chooses, as the user has said.

// bestStanding returns the attempt in the domain with the best placement score of those whose nodes, there or
// coming, hold enough members, nil when none does. Domains that can't hold enough are passed over without an
// attempt, and so are those whose score can't be better than the best found, once one holds as many members as
// any domain can. When one is found, as much more work is done as the scheduler does to find a better one. As long as
// none is, half of the gang's work may be done, so that the other half is left for domains that nodes are bought in.
func (b *builder) bestStanding(g *gang, pods []*cluster.Pod, need int, domains []*gangDomain) *attempt {
	type found struct {
		*attempt
		fill int64
	}
	var all []found
	bound, holds := 1, 1 // the most members that a domain may hold, and does
	begun, half := b.gangs.work, b.gangs.work+maxWorkOfGang/2
	for _, d := range domains {
		bound = max(bound, d.holds)
	}
	best := func() (out *attempt, score int64) {
		for _, x := range all {
			if s := framework.PlacementScore(len(x.places), holds, x.fill); out == nil || s > score {
				out, score = x.attempt, s
			}
		}
		return out, score
	}
	for _, d := range domains {
		if len(g.Topologies) == 0 || d.holds < need || b.gangsOver() || b.gangs.work > half {
			continue
		}
		if len(all) > 0 && b.gangs.work-begun > framework.MaxCompared {
			break
		}
		if _, score := best(); holds == bound && len(all) > 0 && d.bound(bound) <= score {
			continue
		}
		a, fits := b.try(g, pods, need, d, nil)
		d.inVain, d.fits = a == nil, fits
		if a != nil {
			var placed []*cluster.Pod
			for _, p := range a.places {
				placed = append(placed, p.pod)
			}
			if len(all) == 0 {
				begun = b.gangs.work
			}
			all, holds = append(all, found{a, b.fill(b.placement(placed), d)}), max(holds, len(a.places))
		}
	}
	a, _ := best()
	return a
}

// placement returns what members add to the nodes they go to, nil without a plugin that scores that.
func (b *builder) placement(members []*cluster.Pod) framework.Placement {
	return b.Engine(members[0]).Profile().Placement(members)
}

// fill scores how full the nodes of a domain are with members, 0 without a plugin that says so.
func (b *builder) fill(members framework.Placement, d *gangDomain) int64 {
	if members == nil {
		return 0
	}
	b.gangs.work += len(d.nodes)
	return members.ScoreNodes(b.State, d.nodes)
}

// bound bounds the placement score of a domain's nodes: it is the score if all members find places there that may.
func (d *gangDomain) bound(most int) int64 { return framework.PlacementScore(d.holds, most, d.fill) }
