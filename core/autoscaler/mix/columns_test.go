package mix

import (
	"math"
	"slices"
)

// This file is Solve without the interior-point method, for measurements: column generation begins
// with what first fit makes of the classes, each in the group that is cheapest for it alone. The
// lower bound comes from the prices that the knapsacks give to nodes' resources.

// SolveWhole is Solve with the whole relaxation, whatever its size.
func SolveWhole(classes []Class, groups []Group) Solution {
	return solve(classes, groups, math.MaxInt, math.Inf(1))
}

// SolveByColumns is Solve without the interior-point method. What has too many rows for the master
// to be solved within maxWork is solved coarsely.
func SolveByColumns(classes []Class, groups []Group) Solution {
	return solution(purchasesByColumns(classes, groups), classes, groups)
}

func purchasesByColumns(classes []Class, groups []Group) solved {
	if countEdges(classes) <= maxEdges {
		r := relax(classes, groups)
		if rows := len(r.pods) + r.rows - r.rowR; 2*rows*rows*rows <= maxWork {
			c := newColumns(r)
			return solved{r, c.dual(), c.purchase()}
		}
	}
	l := &large{classes: classes, groups: groups}
	l.cost, _ = costs(groups)
	clusters := l.clusters()
	merged := clusters[:min(len(clusters), coarseClasses)]
	chosen := l.cheapestGroups(merged)
	coarse := l.coarsen(merged, chosen)
	c := newColumns(coarse.relaxation)
	r := relax(l.part(chosen, maxEdges), groups)
	r.work += coarse.work
	nodes, work := l.finish(newBuyer(r).finish(r.firstFit(r.whole(r.fractionsFrom(coarse, c.fractions())))))
	r.work += work
	return solved{r: r, nodes: nodes}
}

// columns is a master that began with the patterns of first fit, and generated the others.
type columns struct {
	*master
	simple []pattern // what first fit buys
	solved bool
}

func newColumns(r *relaxation) *columns {
	b := newBuyer(r)
	alone := make([]float64, len(r.edges))
	for _, e := range b.cheapest {
		if e >= 0 {
			alone[e] = 1
		}
	}
	c := &columns{master: newMaster(r, make([]float64, r.rows)), simple: b.finish(r.firstFit(r.whole(alone)))}
	c.estimate = 0
	for i, e := range b.cheapest {
		c.center[i] = 0
		if e >= 0 {
			c.center[i] = r.costAlone(e)
			c.add(pattern{r.edges[e].group, []Count{{r.edges[e].class, r.edges[e].fit}}})
		}
	}
	distinct := slices.Clone(c.simple)
	slices.SortStableFunc(distinct, comparePatterns)
	for _, p := range slices.CompactFunc(distinct, func(a, b pattern) bool { return comparePatterns(a, b) == 0 }) {
		c.add(pattern{p.group, slices.Clone(p.pods)})
	}
	c.solved = c.generate()
	r.work += c.work + c.knapsack.work
	return c
}

// dual returns a dual of the relaxation: the prices of nodes' resources at the center.
func (c *columns) dual() []float64 {
	y := make([]float64, c.r.rows)
	copy(c.worth, c.center)
	for j := range c.r.groups {
		group := &c.r.groups[j]
		c.offer(j, nil)
		c.knapsack.price(len(group.free))
		copy(y[c.r.rowQ+group.row:], c.knapsack.lp.y)
		if group.room >= 0 {
			y[c.r.rowR+group.room] = c.roomDual(j)
		}
	}
	return y
}

// fractions returns by edge which fraction of the class the master sends there.
func (c *columns) fractions() []float64 {
	f := make([]float64, len(c.r.edges))
	for row, id := range c.lp.basis {
		if id < 0 {
			continue
		}
		for _, n := range c.patterns[id].pods {
			f[c.r.edge(c.patterns[id].group, n.Class)] += c.lp.x[row] * float64(n.Pods) / float64(c.r.pods[n.Class])
		}
	}
	return f
}

// purchase returns the cheaper of what first fit and column generation come to.
func (c *columns) purchase() []pattern {
	if !c.solved {
		return c.simple
	}
	b := newBuyer(c.r)
	better := b.finish(b.fromMaster(c.master))
	c.r.work += c.work + c.knapsack.work
	if c.r.better(c.simple, better) {
		return c.simple
	}
	return better
}
