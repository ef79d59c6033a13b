package podtopologyspread

import (
	"math"

	"github.com/berthproject/berth/core/framework"
)

// This file has what soft constraints say (PreScore, Score and NormalizeScore of
// kube-scheduler). The raw score of a node is
//
//	sum over soft constraints: matching pods in its domain × ln(domains + 2) + maxSkew − 1
//
// so that few pods score low and a key with more domains weighs more; normalised,
// the lowest raw score gets 100. Only domains of feasible nodes count. The order
// of floating-point operations is kube-scheduler's: another order rounds to other
// scores.

// Score implements framework.GroupRule, in O(groups) for each soft constraint.
func (r *rule) Score(g *framework.Groups, weight int64, out []int64) {
	if len(r.soft) == 0 {
		return
	}
	var room [8]float64 // keeps the weights of up to 8 constraints off the heap
	weights := r.weights(g, room[:0])
	lowest, highest := int64(math.MaxInt64), int64(0)
	for i := range g.Nodes {
		if g.Nodes[i] == 0 || g.Static[i]&ignored != 0 {
			continue
		}
		s := r.raw(g, i, weights)
		lowest, highest = min(lowest, s), max(highest, s)
	}
	for i := range g.Nodes {
		switch {
		case g.Nodes[i] == 0 || g.Static[i]&ignored != 0:
		case highest == 0:
			out[i] += weight * framework.MaxScore
		default:
			out[i] += weight * (framework.MaxScore * (highest + lowest - r.raw(g, i, weights)) / highest)
		}
	}
}

// weights appends what a pod in a domain counts for, by soft constraint.
func (r *rule) weights(g *framework.Groups, to []float64) []float64 {
	for i := range r.soft {
		to = append(to, math.Log(float64(r.size(g, &r.soft[i])+2)))
	}
	return to
}

// Raw implements framework.RawScorer.
func (r *rule) Raw(g *framework.Groups, out []int64) {
	weights := r.weights(g, nil)
	for i := range out {
		if out[i] = 0; g.Static[i]&ignored == 0 {
			out[i] = r.raw(g, i, weights)
		}
	}
}

// raw is the score of a group before normalising.
func (r *rule) raw(g *framework.Groups, i int, weights []float64) int64 {
	var score float64
	for k := range r.soft {
		c := &r.soft[k]
		count, ok := r.count(c, g, i)
		if !ok {
			continue
		}
		// The conversion keeps a product from being fused with the sum, which
		// some machines do and others don't.
		score += float64(float64(count)*weights[k]) + float64(c.maxSkew-1)
	}
	return int64(math.Round(score))
}

// size returns the number of domains among the feasible nodes that aren't
// ignored; the number of such nodes for the hostname. Under the system defaults
// the nodes without the key are one domain.
func (r *rule) size(g *framework.Groups, c *counted) int {
	size := 0
	if c.host >= 0 {
		for i, n := range g.Nodes {
			if g.Static[i]&ignored == 0 {
				size += int(n)
			}
		}
		return size
	}
	r.serial++
	for i, d := range g.Domains[c.domain] {
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
