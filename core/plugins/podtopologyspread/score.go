package podtopologyspread

import (
	"math"

	"github.com/berthproject/berth/core/framework"
)

// Score follows PreScore, Score and NormalizeScore of kube-scheduler 1.36, in
// its order of floating-point operations.
func (r *rule) Score(g *framework.Groups, weight int64, out []int64) {
	if len(r.soft) == 0 {
		return
	}
	var weights [8]float64
	tp := r.weights(g, weights[:0])
	lowest, highest := int64(math.MaxInt64), int64(0)
	for i := range g.Nodes {
		if g.Nodes[i] == 0 || g.Static[i]&ignored != 0 {
			continue
		}
		s := r.raw(g, i, tp)
		lowest, highest = min(lowest, s), max(highest, s)
	}
	for i := range g.Nodes {
		switch {
		case g.Nodes[i] == 0 || g.Static[i]&ignored != 0:
		case highest == 0:
			out[i] += weight * framework.MaxScore
		default:
			out[i] += weight * (framework.MaxScore * (highest + lowest - r.raw(g, i, tp)) / highest)
		}
	}
}

// weights appends the normalising weight of each soft constraint.
func (r *rule) weights(g *framework.Groups, to []float64) []float64 {
	for i := range r.soft {
		to = append(to, math.Log(float64(r.size(g, &r.soft[i])+2)))
	}
	return to
}

// Raw implements framework.RawScorer.
func (r *rule) Raw(g *framework.Groups, out []int64) {
	tp := r.weights(g, nil)
	for i := range out {
		if out[i] = 0; g.Static[i]&ignored == 0 {
			out[i] = r.raw(g, i, tp)
		}
	}
}

// raw is the score before normalising: more pods, more points.
func (r *rule) raw(g *framework.Groups, i int, tp []float64) int64 {
	var score float64
	for k := range r.soft {
		p := &r.soft[k]
		count, ok := r.count(p, g, i)
		if !ok {
			continue
		}
		// The conversion keeps a product from being fused with the sum, which
		// some machines do and others don't.
		score += float64(float64(count)*tp[k]) + float64(p.maxSkew-1)
	}
	return int64(math.Round(score))
}

// size is the number of domains among the feasible nodes; nodes without the
// key are a domain of their own when they aren't ignored.
func (r *rule) size(g *framework.Groups, p *part) int {
	size := 0
	if p.host >= 0 {
		for i, n := range g.Nodes {
			if g.Static[i]&ignored == 0 {
				size += int(n)
			}
		}
		return size
	}
	r.serial++
	for i, d := range g.Domains[p.domain] {
		if g.Nodes[i] == 0 || g.Static[i]&ignored != 0 {
			continue
		}
		for int(d+1) >= len(r.seen) { // NoDomain is -1
			r.seen = append(r.seen, 0)
		}
		if r.seen[d+1] != r.serial {
			r.seen[d+1] = r.serial
			size++
		}
	}
	return size
}
