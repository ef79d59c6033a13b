package mix

import (
	"cmp"
	"math"
	"slices"
)

// This file makes a purchase of whole nodes. What must be true of every step: no node holds
// more than it has, counted exactly, no group has more nodes than room, and no pod is on
// two nodes.

// purchase returns nodes that hold all pods, as far as there is room: the cheaper of what
// first fit makes of the relaxation and of what column generation comes to from there.
// Both are complete purchases; which is cheaper depends on how even the classes are.
func (r *relaxation) purchase(fractions, dual []float64) []pattern {
	b := newBuyer(r)
	simple := b.finish(r.firstFit(r.whole(fractions)))

	// The cube of the rows is what one solution of the master costs.
	if rows := len(r.pods) + r.rows - r.rowR; 2*rows*rows*rows > maxWork {
		return simple // there is no time to solve the master even once
	}
	m := newMaster(r, dual)
	// The master needs a way for each class, so it begins with one node of each.
	for _, e := range b.cheapest {
		if e >= 0 {
			m.add(pattern{r.edges[e].group, []Count{{r.edges[e].class, r.edges[e].fit}}})
		}
	}
	// What first fit bought is a solution of the master's, by which it is never worse.
	distinct := slices.Clone(simple)
	slices.SortStableFunc(distinct, comparePatterns)
	for _, p := range slices.CompactFunc(distinct, func(a, b pattern) bool { return comparePatterns(a, b) == 0 }) {
		m.add(pattern{p.group, slices.Clone(p.pods)})
	}
	solved := m.generate()
	r.work += m.work + m.knapsack.work
	if !solved {
		return simple
	}
	// From here pods are valued by the master's prices.
	r.worths = m.worths()
	b = newBuyer(r)
	better := b.finish(b.fromMaster(m))
	r.work += m.work + m.knapsack.work
	if r.better(simple, better) {
		return simple
	}
	return better
}

// better reports whether a purchase leaves out less than another, or as much and costs no
// more.
// Ties go to the first.
func (r *relaxation) better(a, b []pattern) bool { return r.total(a) <= r.total(b) }

// total returns what a purchase costs, less what it would cost to leave its pods out.
func (r *relaxation) total(nodes []pattern) (sum float64) {
	for _, p := range nodes {
		sum += r.cost[p.group]
		for _, c := range p.pods {
			sum -= unmetCost * float64(c.Pods)
		}
	}
	return sum
}

// buyer buys nodes one by one.
// Its counts are exact whole numbers; the relaxation's fractions end here.
type buyer struct {
	r        *relaxation
	left     []int // by class: pods without a node
	room     []int // by group: nodes that may still be bought
	cheapest []int // by class the edge whose node costs the least per pod, -1 for none
}

func newBuyer(r *relaxation) *buyer {
	b := &buyer{r: r, left: slices.Clone(r.pods), room: slices.Clone(r.room), cheapest: make([]int, len(r.pods))}
	for i := range b.cheapest {
		b.cheapest[i] = -1
	}
	for e := range r.edges {
		if best := &b.cheapest[r.edges[e].class]; *best < 0 || r.costAlone(e) < r.costAlone(*best) {
			*best = e
		}
	}
	return b
}

// fromMaster buys what the master's solution buys in whole numbers, and fills up its
// nodes; then one by one, from the groups of the solution, the nodes whose pods are worth
// most for what they cost.
func (b *buyer) fromMaster(m *master) (nodes []pattern) {
	used := make([]bool, len(b.r.cost))
	for row, id := range m.lp.basis {
		if id < 0 {
			continue
		}
		used[m.patterns[id].group] = true
		// The small number makes up for rounding errors below a whole one.
		for range int(m.lp.x[row] + 1e-5) {
			nodes = b.buy(nodes, m.patterns[id])
		}
	}
	b.fillUp(nodes)
	for i, e := range b.cheapest {
		m.worth[i] = m.center[i]
		if e >= 0 {
			// A class that costs the master nothing still has to go somewhere.
			m.worth[i] = max(m.worth[i], 0.01*b.r.costAlone(e))
		}
	}
	// A budget of its own: what the master used doesn't count against it.
	m.work = 0
	for m.knapsack.work = 0; m.hasTime(); {
		best, ratio := pattern{group: -1}, 0.0
		for j, cost := range b.r.cost {
			if !used[j] || b.room[j] == 0 {
				continue
			}
			m.offer(j, b.left)
			// A node must be worth more for its price than the best so far.
			if pods, value := m.knapsack.fill(b.r.groups[j].free, ratio*cost); pods != nil {
				best, ratio = pattern{j, pods}, value/cost
			}
		}
		if best.group < 0 {
			break
		}
		// The same node is bought as long as its pods last, without solving again.
		for again := true; again; again = b.room[best.group] > 0 && b.has(best.pods) {
			nodes = b.buy(nodes, best)
		}
	}
	return nodes
}

// buy buys a node with as many pods of the pattern as are left, if any are, and if there
// is room.
// A pattern may have been made when more pods were left.
func (b *buyer) buy(nodes []pattern, p pattern) []pattern {
	if b.room[p.group] == 0 {
		return nodes
	}
	bought := pattern{group: p.group}
	for _, c := range p.pods {
		if pods := min(c.Pods, b.left[c.Class]); pods > 0 {
			bought.pods = append(bought.pods, Count{c.Class, pods})
			b.left[c.Class] -= pods
		}
	}
	if len(bought.pods) == 0 {
		return nodes
	}
	b.room[p.group]--
	return append(nodes, bought)
}

// has reports whether so many pods are left.
func (b *buyer) has(pods []Count) bool {
	for _, c := range pods {
		if b.left[c.Class] < c.Pods {
			return false
		}
	}
	return true
}

// finish sees to it that all pods have a node that can have one, that the others haven't room for the
// pods of a node, and that no node can be exchanged for a cheaper one.
// It counts anew what is left, so it takes nodes from anywhere.
func (b *buyer) finish(nodes []pattern) []pattern {
	copy(b.left, b.r.pods)
	copy(b.room, b.r.room)
	for _, p := range nodes {
		b.room[p.group]--
		for _, c := range p.pods {
			b.left[c.Class] -= c.Pods
		}
	}
	b.fillUp(nodes)
	nodes = b.closeNodes(b.buyRest(nodes))
	b.exchange(nodes)
	return nodes
}

// fillUp puts pods that are left where nodes still have free resources, those that would
// cost most first.
// The order is by what a pod would cost on a node of its own.
func (b *buyer) fillUp(nodes []pattern) {
	var order []int
	for i, left := range b.left {
		if left > 0 {
			order = append(order, i)
		}
	}
	if len(order) == 0 {
		return
	}
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Compare(b.r.costAlone(b.cheapest[y]), b.r.costAlone(b.cheapest[x]))
	})
	for n := range nodes {
		p := &nodes[n]
		free := b.r.free(p)
		for _, i := range order {
			e := b.r.edge(p.group, i)
			if e < 0 || b.left[i] == 0 {
				continue
			}
			edge := &b.r.edges[e]
			if pods := min(b.left[i], edge.fitsIn(free, p.count(i))); pods > 0 {
				edge.subtract(free, pods)
				p.add(i, pods)
				b.left[i] -= pods
			}
		}
		p.sortPods()
	}
}

// buyRest buys nodes for the pods that are left, class by class, where there is room, each
// filled up with those of other classes.
// A class that no group takes, or no group has room for, is left out.
func (b *buyer) buyRest(nodes []pattern) []pattern {
	for i := range b.left {
		for b.left[i] > 0 {
			best, least := -1, math.Inf(1)
			for j := range b.r.groups {
				if e := b.r.edge(j, i); e >= 0 && b.room[j] > 0 && b.r.costAlone(e) < least {
					best, least = e, b.r.costAlone(e)
				}
			}
			// There is no room for the class at all.
			if best < 0 {
				break
			}
			edge := &b.r.edges[best]
			nodes = b.buy(nodes, pattern{edge.group, []Count{{i, edge.fit}}})
			b.fillUp(nodes[len(nodes)-1:])
		}
	}
	return nodes
}

// exchange exchanges nodes for the cheapest that hold the same pods, until there are none:
// an exchange makes room in a group that others may want. It ends early when maxWork is done.
func (b *buyer) exchange(nodes []pattern) {
	work := 0
	defer func() { b.r.work += work }()
	for again := true; again; {
		again = false
		var cheapest *pattern // the node before, if nothing cheaper was found for it
		for n := range nodes {
			p := &nodes[n]
			if cheapest != nil && comparePatterns(*cheapest, *p) == 0 {
				continue
			}
			if work >= maxWork {
				return
			}
			best := p.group
			for j, cost := range b.r.cost {
				work++
				if b.room[j] > 0 && cost < b.r.cost[best] {
					work += (len(p.pods) + 1) * len(b.r.groups[j].free)
					if b.r.holds(j, p.pods) {
						best = j
					}
				}
			}
			cheapest = p
			if best != p.group {
				b.room[p.group]++
				b.room[best]--
				p.group, again = best, true
				cheapest = nil
			}
		}
	}
}
