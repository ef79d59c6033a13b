package interpodaffinity

import (
	"math"
	"slices"

	"github.com/berthproject/berth/core/framework"
)

// Score implements framework.GroupRule: 100 × (raw − lowest) / (highest − lowest)
// over the feasible nodes, nothing where all are equal. It follows NormalizeScore
// of kube-scheduler in its order of floating-point operations.
func (r *rule) Score(g *framework.Groups, weight int64, out []int64) {
	if len(r.scores) == 0 {
		return
	}
	r.raws = slices.Grow(r.raws[:0], len(g.Nodes))[:len(g.Nodes)]
	r.Raw(g, r.raws)
	lowest, highest := int64(math.MaxInt64), int64(math.MinInt64)
	for i, s := range r.raws {
		if g.Nodes[i] != 0 {
			lowest, highest = min(lowest, s), max(highest, s)
		}
	}
	if highest <= lowest {
		return
	}
	span := float64(highest - lowest)
	last, score := lowest, int64(0) // of the group before: most groups have the same, and need no division
	for i, s := range r.raws {
		if g.Nodes[i] == 0 {
			continue
		}
		if s != last {
			last, score = s, weight*int64(framework.MaxScore*(float64(s-lowest)/span))
		}
		out[i] += score
	}
}

// Raw implements framework.RawScorer: the groups' scores before normalising, which are what the
// pods in their domains add and take away. They may be negative.
func (r *rule) Raw(g *framework.Groups, out []int64) {
	for i := range out {
		out[i] = int64(g.Host[i] >> hostBits)
	}
	for k := range r.scores {
		c := &r.scores[k]
		if c.domain < 0 {
			continue
		}
		for i, d := range g.Domains[c.domain] {
			out[i] += int64(c.amount) * int64(c.Count(d))
		}
	}
}
