package mix_test

import (
	"math"
	"math/big"
	"slices"

	"github.com/berthproject/berth/core/autoscaler/mix"
)

// This file holds what Solve is compared with: the relaxation's optimum in exact
// fractions, and the cheapest purchase by trying all.

// relaxationOptimum returns the optimum of the relaxation, and false if there isn't room
// for all pods. It has a constraint for each resource and edge, needed or not.
func relaxationOptimum(classes []mix.Class, groups []mix.Group) (float64, bool) {
	type pair struct{ i, j int }
	var edges []pair
	for i, c := range classes {
		for _, j := range c.Takes {
			if c.Pods > 0 && refuses(classes, groups, j, []mix.Count{{Class: i, Pods: 1}}) == "" {
				edges = append(edges, pair{i, j})
			}
		}
	}
	vars := len(edges) + len(groups) // and slack
	var rows []lpRow
	for i, c := range classes {
		row := lpRow{coefficients: make([]int64, vars), right: int64(c.Pods), equal: true}
		for e, p := range edges {
			if p.i == i {
				row.coefficients[e] = 1
			}
		}
		if slices.Max(append(row.coefficients, 0)) > 0 {
			rows = append(rows, row)
		}
	}
	for e, p := range edges {
		row := lpRow{coefficients: make([]int64, vars)}
		row.coefficients[e], row.coefficients[len(edges)+p.j] = 1, -int64(holds(classes, groups, p.i, p.j))
		rows = append(rows, row)
	}
	costs := make([]float64, vars)
	for j, g := range groups {
		costs[len(edges)+j] = g.Price
		for k, all := range g.Allocatable {
			row := lpRow{coefficients: make([]int64, vars)}
			row.coefficients[len(edges)+j] = -all
			for e, p := range edges {
				if p.j == j {
					row.coefficients[e] = classes[p.i].Request[k]
				}
			}
			rows = append(rows, row)
		}
		room := lpRow{coefficients: make([]int64, vars), right: int64(g.Room)}
		room.coefficients[len(edges)+j] = 1
		rows = append(rows, room)
	}
	return exactSimplex(rows, costs)
}

// holds returns how many pods of a class an empty node of a group holds.
func holds(classes []mix.Class, groups []mix.Group, i, j int) int {
	n := 0
	for n < classes[i].Pods && refuses(classes, groups, j, []mix.Count{{Class: i, Pods: n + 1}}) == "" {
		n++
	}
	return n
}

// lpRow is a constraint: coefficients·x is equal to right, or at most that.
type lpRow struct {
	coefficients []int64
	right        int64 // at least 0
	equal        bool
}

// exactSimplex minimises costs·x over x >= 0 by the simplex method in two phases, with
// Bland's rule and in exact fractions; it returns false if there is no such x.
func exactSimplex(rows []lpRow, costs []float64) (float64, bool) {
	vars, slacks := len(costs), len(rows)
	width := vars + slacks + len(rows) + 1 // variables, slack, one artificial each, right side
	table := make([][]*big.Rat, len(rows)+1)
	for i := range table {
		table[i] = make([]*big.Rat, width)
		for k := range table[i] {
			table[i][k] = new(big.Rat)
		}
	}
	objective, basis := table[len(rows)], make([]int, len(rows))
	for i, row := range rows {
		for k, v := range row.coefficients {
			table[i][k].SetInt64(v)
		}
		if !row.equal {
			table[i][vars+i].SetInt64(1)
		}
		table[i][vars+slacks+i].SetInt64(1)
		table[i][width-1].SetInt64(row.right)
		basis[i] = vars + i
		if row.equal {
			basis[i] = vars + slacks + i
		}
	}
	// minimise goes on from the basis; columns from limit on may not enter.
	minimise := func(cost func(k int) *big.Rat, limit int) {
		for k := range width {
			objective[k].Set(cost(k))
			for i := range rows {
				objective[k].Sub(objective[k], new(big.Rat).Mul(cost(basis[i]), table[i][k]))
			}
		}
		for {
			enters := slices.IndexFunc(objective[:limit], func(v *big.Rat) bool { return v.Sign() < 0 })
			if enters < 0 {
				return
			}
			leaves, least := -1, new(big.Rat)
			for i := range rows {
				if table[i][enters].Sign() <= 0 {
					continue
				}
				ratio := new(big.Rat).Quo(table[i][width-1], table[i][enters])
				if c := ratio.Cmp(least); leaves < 0 || c < 0 || c == 0 && basis[i] < basis[leaves] {
					leaves, least = i, ratio
				}
			}
			pivot(table, leaves, enters)
			basis[leaves] = enters
		}
	}
	one, zero := big.NewRat(1, 1), new(big.Rat)
	minimise(func(k int) *big.Rat {
		if k >= vars+slacks && k < width-1 {
			return one
		}
		return zero
	}, vars+slacks)
	if objective[width-1].Sign() != 0 {
		return 0, false
	}
	// An artificial variable that is still basic, and 0, must not grow again.
	for i := range rows {
		if basis[i] >= vars+slacks {
			if k := slices.IndexFunc(table[i][:vars+slacks], func(v *big.Rat) bool { return v.Sign() != 0 }); k >= 0 {
				pivot(table, i, k)
				basis[i] = k
			}
		}
	}
	minimise(func(k int) *big.Rat {
		if k < vars {
			return new(big.Rat).SetFloat64(costs[k])
		}
		return zero
	}, vars+slacks)
	optimum, _ := new(big.Rat).Neg(objective[width-1]).Float64()
	return optimum, true
}

// pivot makes a column of the table a unit vector.
func pivot(table [][]*big.Rat, row, column int) {
	scale := new(big.Rat).Inv(table[row][column])
	for _, v := range table[row] {
		v.Mul(v, scale)
	}
	for i := range table {
		factor := new(big.Rat).Set(table[i][column])
		if i == row || factor.Sign() == 0 {
			continue
		}
		for k, v := range table[row] {
			if v.Sign() != 0 {
				table[i][k].Sub(table[i][k], new(big.Rat).Mul(factor, v))
			}
		}
	}
}

// cheapestPurchase returns what the cheapest purchase costs that holds so many pods of
// each class, by trying all: it puts pod after pod on each node, or on a new one.
func cheapestPurchase(classes []mix.Class, groups []mix.Group, pods []int) float64 {
	best := math.Inf(1)
	type node struct {
		group int
		pods  []mix.Count
	}
	var nodes []node
	var left []int // the class of each pod
	for i, n := range pods {
		for range n {
			left = append(left, i)
		}
	}
	bought := make([]int, len(groups))
	var place func(n int, price float64)
	place = func(n int, price float64) {
		if price >= best {
			return
		}
		if n == len(left) {
			best = price
			return
		}
		for at := range nodes {
			before := nodes[at].pods
			after := slices.Clone(before)
			if last := len(after) - 1; after[last].Class == left[n] {
				after[last].Pods++
			} else {
				after = append(after, mix.Count{Class: left[n], Pods: 1})
			}
			if refuses(classes, groups, nodes[at].group, after) == "" {
				nodes[at].pods = after
				place(n+1, price)
				nodes[at].pods = before
			}
		}
		for j, g := range groups {
			alone := []mix.Count{{Class: left[n], Pods: 1}}
			if bought[j] < g.Room && refuses(classes, groups, j, alone) == "" {
				bought[j]++
				nodes = append(nodes, node{j, alone})
				place(n+1, price+g.Price)
				nodes = nodes[:len(nodes)-1]
				bought[j]--
			}
		}
	}
	place(0, 0)
	return best
}
