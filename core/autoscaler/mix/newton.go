package mix

import "math"

// This file holds the linear equations of one step of the interior-point method. With N
// the columns of the numbers of nodes n, A those of all other variables, and D = x/z,
// positive and diagonal, they are
//
//	A·D·Aᵀ·dy + N·dn    = p
//	Nᵀ·dy     - dn/D(n) = q
//
// n stays an unknown because its columns would couple all constraints of a group. Without
// them a constraint of an edge or of a room is coupled with no other of its kind, nor is
// that of a class once those of edges are gone: these are eliminated by formula. What
// remains is dense, and small: for each group its resources, then its n. It is
// quasi-definite, so elimination needs no pivoting: pivots are positive for resources and
// negative for n.

// newton holds the factors of the equations of one step. Its memory is used again by the
// next.
type newton struct {
	r *relaxation
	// first is by group the first of its unknowns in the dense matrix; the last of them
	// is n's.
	first []int
	size  int
	dense [][]float64 // by row, the lower triangle: L, with the pivots on the diagonal

	limitPivot []float64 // by edge constraint
	roomPivot  []float64 // by room constraint
	classPivot []float64 // by class
	// weight is by edge what is left of its D once its constraint is eliminated, and
	// nodes what that couples its class and resources with n by.
	weight, nodes []float64
	d             []float64
	rhs           []float64 // of the dense matrix

	entries []entry // of one class, in the dense matrix
}

// entry is a coefficient of a class's row in the columns of the dense matrix.
type entry struct {
	at    int
	value float64
}

func newNewton(r *relaxation) *newton {
	n := &newton{r: r, first: make([]int, len(r.groups)),
		limitPivot: make([]float64, r.rowC), roomPivot: make([]float64, r.rows-r.rowR), classPivot: make([]float64, r.rowQ-r.rowC),
		weight: make([]float64, len(r.edges)), nodes: make([]float64, len(r.edges))}
	for j := range r.groups {
		n.first[j] = n.size
		n.size += len(r.groups[j].resources) + 1
	}
	n.dense = make([][]float64, n.size)
	for i := range n.dense {
		n.dense[i] = make([]float64, i+1)
	}
	n.rhs = make([]float64, n.size)
	return n
}

// last returns the unknown of the group's number of nodes.
func (n *newton) last(j int) int { return n.first[j] + len(n.r.groups[j].resources) }

// factor sets up and factors the equations for a D.
func (n *newton) factor(d []float64) {
	r := n.r
	n.d = d
	for i := range n.dense {
		clear(n.dense[i])
	}
	for j := range r.groups {
		group := &r.groups[j]
		last := n.last(j)
		for k := range group.resources {
			n.dense[n.first[j]+k][n.first[j]+k] = d[r.colS+group.row+k]
			n.dense[last][n.first[j]+k] = -1
		}
		n.dense[last][last] = -1 / d[r.colN+j]
		if group.room >= 0 {
			n.roomPivot[group.room] = d[r.colW+group.room]
			n.dense[last][last] -= 1 / n.roomPivot[group.room]
		}
	}
	for i := range n.classPivot {
		n.classPivot[i] = 0
		if u := r.unmet[i]; u >= 0 {
			n.classPivot[i] = d[r.colU+u]
		}
	}
	for e := range r.edges {
		n.eliminateEdge(e)
	}
	for e := 0; e < len(r.edges); {
		e = n.eliminateClass(e)
	}
	n.factorDense()
}

// eliminateEdge eliminates the edge's constraint, if it has one, and adds what the edge
// says about its class and its group.
func (n *newton) eliminateEdge(e int) {
	r, edge := n.r, &n.r.edges[e]
	first, last := n.first[edge.group], n.last(edge.group)
	n.weight[e], n.nodes[e] = n.d[e], 0
	if l := edge.limit; l >= 0 {
		slack := n.d[r.colO+l]
		pivot := edge.alone*edge.alone*n.d[e] + slack
		n.limitPivot[l] = pivot
		n.weight[e] = n.d[e] * (slack / pivot)
		n.nodes[e] = edge.alone * n.d[e] / pivot
		n.dense[last][last] -= 1 / pivot
	}
	n.classPivot[edge.class] += n.weight[e]
	for k, needs := range edge.needs {
		for l := range k + 1 {
			n.dense[first+k][first+l] += needs * edge.needs[l] * n.weight[e]
		}
		n.dense[last][first+k] += needs * n.nodes[e]
	}
}

// eliminateClass eliminates the class that has the edge e, and returns the first edge of
// the next.
func (n *newton) eliminateClass(e int) int {
	class := n.r.edges[e].class
	n.entries = n.entries[:0]
	for ; e < len(n.r.edges) && n.r.edges[e].class == class; e++ {
		edge := &n.r.edges[e]
		first := n.first[edge.group]
		for k, needs := range edge.needs {
			n.entries = append(n.entries, entry{first + k, needs * n.weight[e]})
		}
		if n.nodes[e] != 0 {
			n.entries = append(n.entries, entry{n.last(edge.group), n.nodes[e]})
		}
	}
	pivot := n.classPivot[class]
	for i, a := range n.entries {
		row, scaled := n.dense[a.at], a.value/pivot
		for _, b := range n.entries[:i+1] {
			row[b.at] -= scaled * b.value
		}
	}
	return e
}

// factorDense factors the dense matrix into L·P·Lᵀ, P being diagonal.
func (n *newton) factorDense() {
	negative := make([]bool, n.size)
	for j := range n.first {
		negative[n.last(j)] = true
	}
	scaled := make([]float64, n.size) // a row of L times P
	for i, row := range n.dense {
		for j := range i {
			sum := row[j]
			for k, v := range n.dense[j][:j] {
				sum -= v * scaled[k]
			}
			scaled[j] = sum
			row[j] = sum / n.dense[j][j]
		}
		pivot := row[i]
		largest := math.Abs(pivot)
		for k := range i {
			pivot -= row[k] * scaled[k]
		}
		// What is left of a pivot may be nothing but rounding errors.
		least := 1e-14*largest + 1e-300
		if negative[i] {
			row[i] = min(pivot, -least)
		} else {
			row[i] = max(pivot, least)
		}
	}
}

// solve solves the equations for p, by constraint, and q, by group, and returns the
// solution in place: dy in p, dn in q.
func (n *newton) solve(p, q []float64) {
	r := n.r
	for j := range r.groups {
		group := &r.groups[j]
		copy(n.rhs[n.first[j]:], p[r.rowQ+group.row:][:len(group.resources)])
		n.rhs[n.last(j)] = q[j]
		if group.room >= 0 {
			n.rhs[n.last(j)] -= p[r.rowR+group.room] / n.roomPivot[group.room]
		}
	}
	n.forwardEdges(p)
	classes := p[r.rowC:r.rowQ]
	n.eachEntry(func(class, at int, value float64) { n.rhs[at] -= value * classes[class] / n.classPivot[class] })
	n.solveDense()
	n.eachEntry(func(class, at int, value float64) { classes[class] -= value * n.rhs[at] })
	for i, pivot := range n.classPivot {
		if pivot > 0 {
			classes[i] /= pivot
		}
	}
	for j := range r.groups {
		group := &r.groups[j]
		copy(p[r.rowQ+group.row:][:len(group.resources)], n.rhs[n.first[j]:])
		q[j] = n.rhs[n.last(j)]
		if group.room >= 0 {
			p[r.rowR+group.room] = (p[r.rowR+group.room] - q[j]) / n.roomPivot[group.room]
		}
	}
	n.backwardEdges(p, q)
}

// forwardEdges eliminates the constraints of edges from the right side.
func (n *newton) forwardEdges(p []float64) {
	for e := range n.r.edges {
		edge := &n.r.edges[e]
		if l := edge.limit; l >= 0 {
			p[n.r.rowC+edge.class] -= n.nodes[e] * p[l]
			for k, needs := range edge.needs {
				n.rhs[n.first[edge.group]+k] -= needs * n.nodes[e] * p[l]
			}
			n.rhs[n.last(edge.group)] += p[l] / n.limitPivot[l]
		}
	}
}

// backwardEdges sets what the constraints of edges have in the solution, once all else is
// known.
func (n *newton) backwardEdges(p, q []float64) {
	for e := range n.r.edges {
		edge := &n.r.edges[e]
		if l := edge.limit; l >= 0 {
			sum := p[n.r.rowC+edge.class]
			for k, needs := range edge.needs {
				sum += needs * n.rhs[n.first[edge.group]+k]
			}
			p[l] = (p[l]+q[edge.group])/n.limitPivot[l] - n.nodes[e]*sum
		}
	}
}

// eachEntry calls f for the coefficients of the classes' rows in the columns of the dense
// matrix.
func (n *newton) eachEntry(f func(class, at int, value float64)) {
	for e := range n.r.edges {
		edge := &n.r.edges[e]
		for k, needs := range edge.needs {
			f(edge.class, n.first[edge.group]+k, needs*n.weight[e])
		}
		if n.nodes[e] != 0 {
			f(edge.class, n.last(edge.group), n.nodes[e])
		}
	}
}

// solveDense solves for rhs in place.
func (n *newton) solveDense() {
	x := n.rhs
	for i, row := range n.dense {
		for k, v := range row[:i] {
			x[i] -= v * x[k]
		}
	}
	for i, row := range n.dense {
		x[i] /= row[i]
	}
	for i := n.size - 1; i >= 0; i-- {
		for k, v := range n.dense[i][:i] {
			x[k] -= v * x[i]
		}
	}
}
