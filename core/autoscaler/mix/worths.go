package mix

import (
	"cmp"
	"slices"
)

// This file computes a lower bound from what column generation has found pods to be worth. The bound of
// the relaxation (prices.go) lets a resource of a node be used up by fractions of pods; where nodes hold
// few pods, such as parts of two GPUs, no purchase comes near it. Here every node holds whole pods, as
// far as two of its resources go.
//
// Let each pod have a worth, and each group one for the room that a node takes; none is negative. If no
// node can hold pods of more worth than it costs with its room, then all pods are worth at most what the
// purchase costs and all room is worth (Farley's bound). Whatever is wrong with the worths makes the
// bound worse, never false.

// worths are what pods and room are worth, in the unit of relaxation.cost.
type worths struct {
	pod  []float64 // by class
	room []float64 // by group: of the room for a node
}

// worths returns those that gave the master its highest estimate.
func (m *master) worths() *worths {
	w := &worths{pod: slices.Clone(m.center), room: make([]float64, len(m.r.groups))}
	for j := range w.room {
		w.room[j] = -m.roomDual(j)
	}
	return w
}

// bound returns what any purchase costs at least that holds so many pods of each class, and the
// multiplications or so that it took; 0 when that would be too many. node has by group what a node
// costs.
func (w *worths) bound(r *relaxation, node []float64, pods []int) (sum float64, work int) {
	m := &master{r: r, worth: w.pod}
	excess := 1.0 // worth of the pods of a node per what it costs, at most
	for j := range r.groups {
		cost := node[j]/r.scale + w.room[j]
		most := m.mostIn(j, cost*excess)
		work = m.knapsack.work
		switch {
		case work > maxWork, most > 0 && cost <= 0:
			return 0, work
		case most > 0:
			excess = max(excess, most/cost)
		}
	}
	for i, n := range pods {
		sum += float64(n) * w.pod[i] / excess
	}
	rounding := 1e-9 * sum
	for j, worth := range w.room {
		sum -= worth * float64(r.room[j])
		rounding += 1e-9 * worth * float64(r.room[j])
	}
	return max(0, (sum-rounding)*r.scale), work
}

// mostIn returns what the pods of a node of a group are worth at most, or more than that if it is no
// more than enough.
func (m *master) mostIn(j int, enough float64) float64 {
	m.offer(j, nil)
	group, k := &m.r.groups[j], &m.knapsack
	most := k.price(len(group.free))
	prices := make([]float64, len(group.free))
	var rows []int // of resources that cost something, the dearest first
	for row, y := range k.lp.y {
		if prices[row] = max(0, -y); prices[row] > 0 {
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(prices[b], prices[a]) })
	rows = rows[:min(len(rows), dearest)]
	for n, a := range rows {
		for _, b := range rows[n:] {
			if most > enough && (a != b || len(rows) == 1) {
				most = min(most, k.mostOf(newGrid(k.items, [2]int{a, b}, group.free), prices))
			}
		}
	}
	return most
}

const (
	// dearest is of how many resources each two are looked at.
	dearest = 3
	// perSide is how many parts a resource is divided into, unless no more than twice as many do exactly.
	perSide = 256
)

// grid divides two resources of a node into parts; or one, if both are the same.
type grid struct {
	rows [2]int
	unit [2]int64
	side [2]int // how many parts there are, and none
}

func newGrid(items []item, rows [2]int, free []int64) (g grid) {
	g.rows = rows
	for n, row := range rows {
		g.unit[n] = max(divisor(items, row), 1)
		if free[row]/g.unit[n] > 2*perSide {
			g.unit[n] = (free[row] + perSide - 1) / perSide
		}
		g.side[n] = int(free[row]/g.unit[n]) + 1
	}
	if rows[0] == rows[1] {
		g.side[1] = 1
	}
	return g
}

// divisor returns the greatest common divisor of what items request of a resource.
func divisor(items []item, row int) (d int64) {
	for i := range items {
		for rest := items[i].edge.request[row]; rest > 0; {
			d, rest = rest, d%rest
		}
	}
	return d
}

// parts returns how many parts a pod takes, rounded down.
func (g *grid) parts(e *edge) (parts [2]int) {
	for n, row := range g.rows {
		if g.side[n] > 1 {
			parts[n] = int(e.request[row] / g.unit[n])
		}
	}
	return parts
}

// mostOf returns what the items of a node are worth at most if they are whole in the resources of the
// grid, and pay for the others by prices, which are those of all of a node's.
func (k *knapsack) mostOf(g grid, prices []float64) (most float64) {
	best := make([]float64, g.side[0]*g.side[1]) // by the parts that are used: the first times side[1], and the second
	for row, price := range prices {
		if !slices.Contains(g.rows[:], row) {
			most += price
		}
	}
	for i := range k.items {
		it := &k.items[i]
		value := it.value
		for row, share := range it.edge.share {
			if !slices.Contains(g.rows[:], row) {
				value -= prices[row] * share
			}
		}
		parts := g.parts(it.edge)
		switch {
		case value <= 0:
		case parts == [2]int{}:
			most += float64(it.max) * value
		default:
			k.work += g.add(best, parts, it.max, value)
		}
	}
	return most + slices.Max(best)
}

// add lets every filling have some more pods, by what the best is worth that takes so many parts: up to
// the first's times side[1], and the second's. It returns the multiplications or so that it took. Pods
// are added in heaps of one, two, four and so on, of which some make up any number.
func (g *grid) add(best []float64, parts [2]int, pods int, value float64) (work int) {
	for heap := 1; pods > 0; heap *= 2 {
		heap = min(heap, pods)
		pods -= heap
		size := [2]int{parts[0] * heap, parts[1] * heap}
		if size[0] >= g.side[0] || size[1] >= g.side[1] {
			break
		}
		work += len(best)
		for first := g.side[0] - 1; first >= size[0]; first-- { // from above, so that none gets a heap twice
			to, from := best[first*g.side[1]:], best[(first-size[0])*g.side[1]:]
			for second := g.side[1] - 1; second >= size[1]; second-- {
				to[second] = max(to[second], from[second-size[1]]+float64(heap)*value)
			}
		}
	}
	return work
}
