package scaleup

import (
	"fmt"
	"slices"

	"github.com/berthproject/berth/core/cluster"
)

// headroom returns how many more nodes the plan may propose of a group, and, when that
// is none, why, in Cluster Autoscaler's words. The core checks the same limits again
// when it commits the plan.
func (b *builder) headroom(g *cluster.NodeGroup) (int, string) {
	if b.req.Conditions[g.ID].BackingOff {
		return 0, "in backoff after failed scale-up"
	}
	room := g.Max - g.Target - b.proposed[g.ID]
	if room <= 0 {
		return 0, "max node group size reached"
	}
	limits := &b.req.Limits
	if limits.MaxNodesPerScaleUp > 0 {
		if room = min(room, limits.MaxNodesPerScaleUp-b.proposed[g.ID]); room <= 0 {
			return 0, "max number of nodes per scale-up reached"
		}
	}
	if limits.MaxNodesTotal > 0 {
		// The state has the coming and the proposed nodes, too.
		if room = min(room, limits.MaxNodesTotal-b.State.Live()); room <= 0 {
			return 0, "max cluster size reached"
		}
	}
	if limits.MaxNodesLaunching > 0 {
		room = min(room, limits.MaxNodesLaunching-b.launching)
		for _, n := range b.proposed {
			room -= n
		}
	}
	return room, "max number of nodes launching reached"
}

// filteredOut is why a group that could grow doesn't: an expander has forbidden it.
const filteredOut = "expansion options filtered out and no longer considered"

// reasons says why no group would help the first pod of a run: for each reason, "COUNT
// reason", how many groups give it, sorted as text.
func (b *builder) reasons(r *run) []string {
	counts := map[string]int{}
	for _, g := range b.State.Groups() {
		if room, why := b.headroom(g); room <= 0 {
			counts[why]++
			continue
		}
		mark := b.State.Mark()
		i := b.addNode(g, "probe")
		e := b.Engine(r.pods[0])
		if reason := e.Explain(e.Current(r.class, r.pods[0]), i); reason != nil {
			for _, m := range reason.Messages {
				counts[m]++
			}
		} else { // the group was an option, so the expander has forbidden it
			counts[filteredOut]++
		}
		b.State.Rollback(mark)
	}
	var out []string
	for m, n := range counts {
		out = append(out, fmt.Sprintf("%d %s", n, m))
	}
	slices.Sort(out)
	return out
}
