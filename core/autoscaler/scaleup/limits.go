package scaleup

import (
	"fmt"
	"slices"

	"github.com/berthproject/berth/core/cluster"
)

// limits is what there is of the cluster, with what is coming, before the plan proposes
// anything.
type limits struct {
	nodes     int // that exist or are coming
	launching int // that are coming, of all groups
}

// newLimits is called when the coming nodes stand in the state.
func (b *builder) newLimits() limits {
	return limits{nodes: b.State.Live(), launching: Launching(b.coming)}
}

// headroom returns how many more nodes the plan may propose of a group, and, when that
// is none, why, in Cluster Autoscaler's words. The core checks the same limits again
// when it commits the plan.
func (b *builder) headroom(g *cluster.NodeGroup) (int, string) {
	if b.req.Conditions[g.ID].BackingOff {
		return 0, "in backoff after failed scale-up"
	}
	own := b.proposed[g.ID]
	room := g.Max - g.Target - own
	if room <= 0 {
		return 0, "max node group size reached"
	}
	all := 0
	for _, n := range b.proposed {
		all += n
	}
	limits := &b.req.Limits
	for _, limit := range []struct {
		max, used int
		why       string
	}{
		{limits.MaxNodesPerScaleUp, own, "max number of nodes per scale-up reached"},
		{limits.MaxNodesTotal, b.limits.nodes + all, "max cluster size reached"},
		{limits.MaxNodesLaunching, b.limits.launching + all, "max number of nodes launching reached"},
	} {
		if limit.max <= 0 {
			continue
		}
		if room = min(room, limit.max-limit.used); room <= 0 {
			return 0, limit.why
		}
	}
	return room, ""
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
		i := b.addNode(b.models[g.ID], g.ID+"/probe")
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
