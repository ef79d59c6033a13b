package mix

import (
	"cmp"
	"slices"
)

// This file fills one node with the pods that are worth most: a knapsack of several
// resources in which each pod has a value. It is solved well, not exactly.
//
// First the fractional knapsack is solved. Its dual gives each resource of the node a
// price at which no pod is worth more than what it takes, and the prices add up to the
// most that any filling can be worth. A filling's loss is what its pods are worth less
// than they take; pods and fillings that lose too much are left out at once. Then class
// after class is added, those that take most first, to the best filling that is known for
// each level of use, in resources times prices.

// levels is how many fillings are kept at a time.
const levels = 128

// item is a class as the knapsack sees it.
type item struct {
	edge  *edge
	max   int     // pods that may be taken
	value float64 // of a pod
	takes float64 // what a pod requests of the node's resources, times their prices
}

// knapsack fills nodes. Its memory is used again by the next.
type knapsack struct {
	items []item
	lp    simplex
	best  []filling // by level
	trial []int64
	steps []fillStep
	work  int // multiplications or so since the beginning
}

// filling is what a node may hold.
type filling struct {
	value, taken float64 // value is -1 for no filling
	free         []int64 // by row
	last         int32   // its last step, -1 for the empty filling
}

// fillStep adds pods of an item to the filling that another step has led to.
type fillStep struct{ before, item, pods int32 }

// fill returns the pods of a filling of an empty node that is worth more than target, and
// its value; nil and target if it finds none. It drops and reorders items.
func (k *knapsack) fill(empty []int64, target float64) ([]Count, float64) {
	most := k.price(len(empty))
	if most <= target {
		return nil, target
	}
	loss := (most - target) * (1 + 1e-9)
	k.items = slices.DeleteFunc(k.items, func(it item) bool { return it.takes-it.value > loss })
	slices.SortStableFunc(k.items, func(a, b item) int { return cmp.Compare(b.takes, a.takes) })
	last := k.search(empty, most, loss, target)
	if last < 0 {
		return nil, target
	}
	var p pattern
	value := 0.0
	for ; last >= 0; last = k.steps[last].before {
		step := k.steps[last]
		it := &k.items[step.item]
		p.add(it.edge.class, int(step.pods))
		value += float64(step.pods) * it.value
	}
	p.sortPods()
	return p.pods, value
}

// price solves the fractional knapsack: it sets what the items take, and returns what all
// of a node's resources are worth. If the simplex method doesn't end in time, the prices
// are raised until no pod is worth more than it takes.
func (k *knapsack) price(rows int) (sum float64) {
	b, costs := make([]float64, rows), make([]float64, rows)
	for row := range b {
		b[row] = 1 + 1e-9*float64(row) // equal ratios could make it go in circles
	}
	k.lp.reset(b, costs)
	column := make([]cell, rows)
	for range 20 * (rows + 1) {
		k.work += rows * len(k.items)
		if at := k.mostUndervalued(); at >= 0 {
			for row, share := range k.items[at].edge.share {
				column[row] = cell{row, share}
			}
			k.lp.enter(at, -k.items[at].value, column)
			continue
		}
		row := slices.IndexFunc(k.lp.y, func(y float64) bool { return y > 1e-12 })
		if row < 0 {
			break
		}
		k.lp.enter(-1, 0, []cell{{row, 1}})
	}
	raise := 1.0
	for i := range k.items {
		it := &k.items[i]
		if it.edge.largest() == 0 {
			continue
		}
		it.takes = 0
		for row, share := range it.edge.share {
			it.takes += max(0, -k.lp.y[row]) * share
		}
		if it.takes > 0 {
			raise = max(raise, it.value/it.takes)
		}
	}
	for _, y := range k.lp.y {
		sum += max(0, -y) * raise
	}
	for i := range k.items {
		it := &k.items[i]
		if it.takes *= raise; it.edge.largest() == 0 {
			it.takes = it.value // pods that request nothing are all taken, and lose nothing
			sum += float64(it.max) * it.value
		}
	}
	return sum
}

// mostUndervalued returns the item whose pods are worth most above what they take at the
// simplex method's prices, relatively; -1 for none.
func (k *knapsack) mostUndervalued() int {
	at, worst := -1, 1-1e-12
	for i := range k.items {
		it := &k.items[i]
		if it.edge.largest() == 0 {
			continue
		}
		takes := 0.0
		for row, share := range it.edge.share {
			takes -= k.lp.y[row] * share
		}
		if ratio := takes / it.value; ratio < worst {
			at, worst = i, ratio
		}
	}
	return at
}

// search returns the last step of the best filling that is worth more than target, -1 for
// none.
func (k *knapsack) search(empty []int64, most, loss, target float64) int32 {
	k.begin(empty)
	found := int32(-1)
	perUse := (levels - 1) / most
	for i := range k.items {
		it := &k.items[i]
		k.work += levels
		// From above, so that a filling doesn't get pods of the item twice.
		for level := levels - 1; level >= 0; level-- {
			if k.best[level].value < 0 {
				continue
			}
			now := k.best[level]
			copy(k.trial, now.free)
			for pods := range it.edge.fitsIn(now.free, it.edge.fit-it.max) {
				k.work += 4 + len(k.trial)
				it.edge.subtract(k.trial, 1)
				now.value += it.value
				now.taken += it.takes
				if now.taken-now.value > loss {
					break
				}
				to := &k.best[min(levels-1, int(now.taken*perUse))]
				if now.value <= to.value {
					continue
				}
				to.value, to.taken, to.last = now.value, now.taken, int32(len(k.steps))
				copy(to.free, k.trial)
				k.steps = append(k.steps, fillStep{now.last, int32(i), int32(pods + 1)})
				if now.value > target {
					target, found = now.value, to.last
				}
			}
		}
	}
	return found
}

// begin forgets all fillings but the empty one.
func (k *knapsack) begin(empty []int64) {
	if k.best == nil {
		k.best = make([]filling, levels)
	}
	for level := range k.best {
		k.best[level] = filling{value: -1, free: append(k.best[level].free[:0], empty...)}
	}
	k.best[0].value, k.best[0].last = 0, -1
	k.trial = append(k.trial[:0], empty...)
	k.steps = k.steps[:0]
}
