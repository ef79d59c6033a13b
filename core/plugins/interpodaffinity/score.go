package interpodaffinity

import (
	"math"

	"github.com/berthproject/berth/core/framework"
)

// raw is the score of a group before normalising: what the pods in its domains
// add and take away. It may be negative.
func (r *rule) raw(g *framework.Groups, i int) int64 {
	score := int64(g.Host[i] >> hostBits)
	for k := range r.scores {
		if c := &r.scores[k]; c.domain >= 0 {
			score += int64(c.amount) * int64(c.Count(g.Domains[c.domain][i]))
		}
	}
	return score
}

// Score implements framework.GroupRule: 100 × (raw − lowest) / (highest − lowest)
// over the feasible nodes, nothing where all are equal. It follows NormalizeScore
// of kube-scheduler 1.36 in its order of floating-point operations.
func (r *rule) Score(g *framework.Groups, weight int64, out []int64) {
	if len(r.scores) == 0 {
		return
	}
	lowest, highest := int64(math.MaxInt64), int64(math.MinInt64)
	r.raws = r.raws[:0]
	for i, n := range g.Nodes {
		if n == 0 {
			r.raws = append(r.raws, 0)
			continue
		}
		s := r.raw(g, i)
		r.raws = append(r.raws, s)
		lowest, highest = min(lowest, s), max(highest, s)
	}
	if highest <= lowest {
		return
	}
	span := float64(highest - lowest)
	for i, s := range r.raws {
		if g.Nodes[i] != 0 {
			out[i] += weight * int64(framework.MaxScore*(float64(s-lowest)/span))
		}
	}
}

// Raw implements framework.RawScorer.
func (r *rule) Raw(g *framework.Groups, out []int64) {
	for i := range out {
		out[i] = r.raw(g, i)
	}
}
