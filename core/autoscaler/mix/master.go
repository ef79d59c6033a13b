package mix

// This file finds patterns worth buying, by column generation (Gilmore and Gomory's, with
// nodes of several kinds and several resources). The linear program over the patterns
// that are known, the master, chooses how many nodes of each hold all pods for the least,
// in fractions. Its dual says what a pod of each class is worth. A node that can be filled
// with more than it costs is a new pattern that makes the program better. The master's
// rows are the classes, then the room constraints of the relaxation.

const (
	// smoothing is how far the worths that patterns are looked for with keep to the best
	// that are known: the master's own jump about as long as it has few patterns.
	smoothing = 0.8
	// goodEnough is the relative gap between the master's cost and the estimate at which
	// the search for patterns ends.
	goodEnough = 5e-4
	// maxWork limits column generation, again what is bought after it, and exchanges of nodes of
	// a large problem (rest.go): in multiplications or so, about a second each. The openb pod
	// list needs a third of it.
	maxWork = 400_000_000
	// worthwhile is what a reduced cost has to be at least, relatively to the cost of a
	// node, for a pattern to be added.
	worthwhile = 1e-6
)

// master is the linear program over patterns.
type master struct {
	r        *relaxation
	lp       simplex
	patterns []pattern
	columns  [][]cell // by pattern
	knapsack knapsack
	// center has by class the worths of a pod that gave the highest estimate: what the
	// master would cost at least if the knapsacks were solved exactly.
	center   []float64
	estimate float64
	worth    []float64 // by class, that patterns are looked for with
	work     int
}

// newMaster returns a master without patterns, and with the worths that the relaxation's
// dual gives.
func newMaster(r *relaxation, dual []float64) *master {
	p := newPrices(r, r.cost)
	p.set(dual, 1)
	m := &master{r: r, center: p.pays, estimate: p.bound(r.pods), worth: make([]float64, len(r.pods))}
	rows := len(r.pods) + r.rows - r.rowR
	b, costs := make([]float64, rows), make([]float64, rows)
	for i, pods := range r.pods {
		// Equal ratios could make the simplex method go in circles.
		b[i] = float64(pods) + 1e-7*float64(i+1)/float64(len(r.pods))
		costs[i] = unmetCost
	}
	copy(b[len(r.pods):], r.b[r.rowR:])
	m.lp.reset(b, costs)
	return m
}

// add lets the master choose a pattern.
func (m *master) add(p pattern) {
	column := make([]cell, 0, len(p.pods)+1)
	for _, c := range p.pods {
		column = append(column, cell{c.Class, float64(c.Pods)})
	}
	if room := m.r.groups[p.group].room; room >= 0 {
		column = append(column, cell{len(m.r.pods) + room, 1})
	}
	m.patterns, m.columns = append(m.patterns, p), append(m.columns, column)
}

// generate adds patterns until they make the master hardly better, or maxWork is done. It
// returns false if there wasn't time to solve the master even once.
func (m *master) generate() (solved bool) {
	for m.optimise() {
		solved = true
		if m.cost()-m.estimate <= goodEnough*m.cost() || m.addPatterns(smoothing) == 0 && m.addPatterns(0) == 0 {
			break
		}
	}
	return solved
}

// hasTime reports whether less than maxWork was done.
func (m *master) hasTime() bool { return m.work+m.knapsack.work < maxWork }

// optimise solves the master, and returns false if maxWork was done before.
func (m *master) optimise() bool {
	for m.hasTime() {
		least, at := -1e-9, -1
		for n, column := range m.columns {
			if reduced := m.lp.reduced(m.r.cost[m.patterns[n].group], column); reduced < least {
				least, at = reduced, n
			}
		}
		m.work += 4*len(m.columns) + 2*len(m.lp.x)*len(m.lp.x)
		if at >= 0 {
			m.lp.enter(at, m.r.cost[m.patterns[at].group], m.columns[at])
		} else if !m.slack() {
			return true
		}
	}
	return false
}

// slack lets a slack enter: pods of a class that are held more than once, or room that is
// left. It returns false if there is none to enter.
func (m *master) slack() bool {
	for row, y := range m.lp.y {
		if row < len(m.r.pods) && y < -1e-9 {
			return m.lp.enter(-1, 0, []cell{{row, -1}})
		}
		if row >= len(m.r.pods) && y > 1e-9 {
			return m.lp.enter(-1, 0, []cell{{row, 1}})
		}
	}
	return false
}

// cost returns what the master's solution costs, that of unmet pods included.
func (m *master) cost() float64 {
	sum := m.roomWorth()
	for i, pods := range m.r.pods {
		sum += m.lp.y[i] * float64(pods)
	}
	return sum
}

// roomWorth returns what all room is worth, which is 0 or less.
func (m *master) roomWorth() (sum float64) {
	for j := range m.r.groups {
		sum += m.roomDual(j) * float64(m.r.room[j])
	}
	return sum
}

// roomDual returns what the master would cost more for one more node of room in a group,
// which is 0 or less.
func (m *master) roomDual(j int) float64 {
	if room := m.r.groups[j].room; room >= 0 {
		return min(0, m.lp.y[len(m.r.pods)+room])
	}
	return 0
}

// addPatterns fills a node of each group, by worths that are a mean of the best known ones and
// the master's, and returns how many patterns that are worth it it has added.
func (m *master) addPatterns(smoothing float64) (added int) {
	for i := range m.worth {
		m.worth[i] = smoothing*m.center[i] + (1-smoothing)*max(0, m.lp.y[i])
	}
	excess := 1.0 // worth of the pods of a node per what it costs, at most
	for j := range m.r.groups {
		cost := m.r.cost[j] - m.roomDual(j)
		m.offer(j, nil)
		pods, value := m.knapsack.fill(m.r.groups[j].free, cost)
		if pods == nil {
			continue
		}
		excess = max(excess, value/cost)
		m.add(pattern{j, pods})
		last := len(m.columns) - 1
		if m.lp.reduced(m.r.cost[j], m.columns[last]) < -worthwhile*cost {
			added++
		} else {
			m.patterns, m.columns = m.patterns[:last], m.columns[:last]
		}
	}
	estimate := m.roomWorth()
	for i, pods := range m.r.pods {
		estimate += m.worth[i] / excess * float64(pods)
	}
	if estimate > m.estimate {
		m.estimate = estimate
		for i := range m.worth {
			m.center[i] = m.worth[i] / excess
		}
	}
	return added
}

// offer makes the pods of the classes that a group takes the knapsack's items. left has
// by class how many there are, nil for all.
func (m *master) offer(j int, left []int) {
	k := &m.knapsack
	k.items = k.items[:0]
	k.work += 4 * len(m.r.groups[j].edges)
	for _, e := range m.r.groups[j].edges {
		edge := &m.r.edges[e]
		most := edge.fit
		if left != nil {
			most = min(most, left[edge.class])
		}
		if worth := m.worth[edge.class]; most > 0 && worth > 0 {
			k.items = append(k.items, item{edge: edge, max: most, value: worth})
		}
	}
}
