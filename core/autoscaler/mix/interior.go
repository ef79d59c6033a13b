package mix

import "math"

// This file solves the relaxation by Mehrotra's predictor-corrector interior-point
// method: 15 to 40 steps whatever the size, each of which solves the equations of
// newton.go twice. With G groups and C classes that all groups take, a step costs
// O(C·G² + G³).

const (
	// maxSteps is never needed by input that isn't badly scaled. No step takes more than maxStep.
	maxSteps = 80
	// tolerance is the relative gap between the bound and the relaxation's cost at which
	// the method ends.
	tolerance = 1e-6
)

// point is an interior point of the relaxation and its dual: x and z are positive.
// The method stays off the boundary, where steps would end.
type point struct {
	x, z []float64 // by variable: its value and its reduced cost
	y    []float64 // by constraint: its dual
}

// start returns a point that satisfies everything but the limits of room.
// A feasible start saves steps; limits of room may be violated, and are met on the way.
func (r *relaxation) start() point {
	p := point{make([]float64, r.cols), make([]float64, r.cols), make([]float64, r.rows)}
	r.startNodes(&p)
	r.startDual(&p)
	return p
}

// startNodes spreads the pods over their groups and buys twice the nodes that they need.
// Twice as many, so that no slack begins near 0.
func (r *relaxation) startNodes(p *point) {
	// In how many ways a pod of the class can be had: on an edge, or left out where that is
	// allowed.
	ways := make([]float64, len(r.pods)) // for the pods of a class
	for i, u := range r.unmet {
		if u >= 0 {
			ways[i] = 1
		}
	}
	for e := range r.edges {
		ways[r.edges[e].class]++
	}
	for i, u := range r.unmet {
		if u >= 0 {
			p.x[r.colU+u] = 1 / ways[i]
		}
	}
	for e := range r.edges {
		p.x[e] = 1 / ways[r.edges[e].class]
	}
	needed := make([]float64, r.rows) // by constraint, while there are no nodes
	r.times(p.x, needed)
	nodes := p.x[r.colN:r.colS]
	for e := range r.edges {
		if l := r.edges[e].limit; l >= 0 {
			nodes[r.edges[e].group] = max(nodes[r.edges[e].group], needed[l])
		}
	}
	for j := range r.groups {
		group := &r.groups[j]
		rows := needed[r.rowQ+group.row:][:len(group.resources)]
		for _, n := range rows {
			nodes[j] = max(nodes[j], n)
		}
		nodes[j] = 1 + 2*nodes[j]
		for k, n := range rows {
			p.x[r.colS+group.row+k] = nodes[j] - n
		}
		if group.room >= 0 {
			// 1 is a slack for a limit that is already exceeded.
			p.x[r.colW+group.room] = max(1, r.b[r.rowR+group.room]-nodes[j])
		}
	}
	for e := range r.edges {
		if l := r.edges[e].limit; l >= 0 {
			p.x[r.colO+l] = nodes[r.edges[e].group] - needed[l]
		}
	}
}

// startDual gives the constraints of a group, together, half of the price that they may
// have, and the classes half of what their pods may pay then.
// Half keeps every reduced cost positive.
func (r *relaxation) startDual(p *point) {
	constraints := make([]float64, len(r.groups))
	for j := range r.groups {
		constraints[j] = float64(len(r.groups[j].resources))
	}
	for e := range r.edges {
		if r.edges[e].limit >= 0 {
			constraints[r.edges[e].group]++
		}
	}
	for j := range r.groups {
		group := &r.groups[j]
		for k := range group.resources {
			p.y[r.rowQ+group.row+k] = -r.cost[j] / (2 * constraints[j])
		}
		if group.room >= 0 {
			p.y[r.rowR+group.room] = -r.cost[j] / 2
		}
	}
	for e := range r.edges {
		if l := r.edges[e].limit; l >= 0 {
			j := r.edges[e].group
			p.y[l] = -r.cost[j] / (2 * constraints[j])
		}
	}
	r.transposed(p.y, p.z)
	pays := make([]float64, len(r.pods))
	for i, u := range r.unmet {
		pays[i] = math.Inf(1)
		if u >= 0 {
			pays[i] = r.c[r.colU+u]
		}
	}
	for e := range r.edges {
		pays[r.edges[e].class] = min(pays[r.edges[e].class], -p.z[e])
	}
	// A class without pods has no constraint.
	for i, pods := range r.pods {
		if pods > 0 {
			p.y[r.rowC+i] = pays[i] / 2
		}
	}
	r.transposed(p.y, p.z)
	for k := range p.z {
		// A reduced cost of 0 would put the point on the boundary.
		p.z[k] = max(r.c[k]-p.z[k], 1e-9)
	}
}

// solve returns the fraction of each edge, and the dual that gives the best bound of those
// that it comes by.
// The bound is computed exactly from prices, so it holds even if the method ends early.
func (r *relaxation) solve() (fractions, dual []float64) {
	p := r.start()
	s := newStepper(r)
	prices := newPrices(r, r.cost)
	best, stepWork := math.Inf(-1), int(r.stepWork())
	for steps := 0; ; steps++ {
		// Steps are what is counted, so that a solution doesn't depend on the machine.
		r.work += stepWork
		prices.set(p.y, 1)
		if bound := prices.bound(r.pods); bound > best {
			best = bound
			dual = append(dual[:0], p.y...)
		}
		done := s.cost(&p)-best <= tolerance*best && s.infeasibility(&p) <= tolerance
		if done || steps == maxSteps || !s.step(&p) {
			return p.x[:len(r.edges)], dual
		}
	}
}

// stepper takes the steps. Its memory is used again by each.
// Names follow the literature: r for residuals, d for directions.
type stepper struct {
	r          *relaxation
	n          *newton
	rp, rd, rc []float64 // residuals: of constraints, of duals, of complementarity
	d, t       []float64 // x/z; a scratch vector
	p, q       []float64 // both sides of the equations
	dx, dy, dz []float64
}

func newStepper(r *relaxation) *stepper {
	cols := func() []float64 { return make([]float64, r.cols) }
	rows := func() []float64 { return make([]float64, r.rows) }
	return &stepper{r: r, n: newNewton(r), rp: rows(), rd: cols(), rc: cols(), d: cols(), t: cols(), p: rows(), q: make([]float64, len(r.groups)),
		dx: cols(), dy: rows(), dz: cols()}
}

// cost returns what the point costs.
func (s *stepper) cost(p *point) (sum float64) {
	for k, c := range s.r.c {
		sum += c * p.x[k]
	}
	return sum
}

// infeasibility returns by how much the point violates a constraint, relatively.
func (s *stepper) infeasibility(p *point) (worst float64) {
	s.r.times(p.x, s.rp)
	for i, b := range s.r.b {
		worst = max(worst, math.Abs(b-s.rp[i])/(1+math.Abs(b)))
	}
	return worst
}

// step moves the point, and returns false if rounding errors don't let it.
func (s *stepper) step(p *point) bool {
	mu := s.residuals(p)
	// One factorisation serves predictor and corrector.
	s.n.factor(s.d)
	// The predictor aims at the optimum. How near it comes says how much the corrector
	// has to keep to the middle.
	s.direction(p)
	alphaX, alphaZ := reach(p.x, s.dx), reach(p.z, s.dz)
	after := 0.0
	for k := range s.dx {
		after += (p.x[k] + alphaX*s.dx[k]) * (p.z[k] + alphaZ*s.dz[k])
	}
	shrink := after / mu
	target := shrink * shrink * shrink * mu / float64(s.r.cols)
	for k := range s.rc {
		s.rc[k] = target - p.x[k]*p.z[k] - s.dx[k]*s.dz[k]
	}
	s.direction(p)
	const inside = 0.9995 // of the way to the boundary
	alphaX, alphaZ = min(1, inside*reach(p.x, s.dx)), min(1, inside*reach(p.z, s.dz))
	// A step this short goes nowhere.
	if alphaX < 1e-8 || alphaZ < 1e-8 {
		return false
	}
	for k := range p.x {
		p.x[k] += alphaX * s.dx[k]
		p.z[k] += alphaZ * s.dz[k]
	}
	for i := range p.y {
		p.y[i] += alphaZ * s.dy[i]
	}
	return true
}

// residuals sets what constraints, duals and complementarity lack, and d; it returns the
// sum of the products x·z, which is 0 at the optimum.
func (s *stepper) residuals(p *point) (mu float64) {
	r := s.r
	r.times(p.x, s.rp)
	for i := range s.rp {
		s.rp[i] = r.b[i] - s.rp[i]
	}
	r.transposed(p.y, s.rd)
	for k := range s.rd {
		s.rd[k] = r.c[k] - s.rd[k] - p.z[k]
		s.d[k] = p.x[k] / p.z[k]
		s.rc[k] = -p.x[k] * p.z[k]
		mu -= s.rc[k]
	}
	return mu
}

// direction solves for dx, dy and dz with the residuals as they are.
// It eliminates all but the equations of newton.go and puts the rest back.
func (s *stepper) direction(p *point) {
	r := s.r
	for k := range s.t {
		s.t[k] = s.rc[k]/p.z[k] - s.d[k]*s.rd[k]
	}
	clear(s.t[r.colN:r.colS])
	r.times(s.t, s.p)
	for i := range s.p {
		s.p[i] = s.rp[i] - s.p[i]
	}
	for j := range s.q {
		k := r.colN + j
		s.q[j] = s.rd[k] - s.rc[k]/p.x[k]
	}
	s.n.solve(s.p, s.q)
	copy(s.dy, s.p)
	r.transposed(s.dy, s.dz)
	for k := range s.dz {
		s.dz[k] = s.rd[k] - s.dz[k]
		s.dx[k] = (s.rc[k] - p.x[k]*s.dz[k]) / p.z[k]
	}
	copy(s.dx[r.colN:r.colS], s.q)
}

// reach returns how far one may go from v in the direction d until an element is 0: 1 at
// most.
// A direction that isn't a number comes of rounding, and leads nowhere.
func reach(v, d []float64) float64 {
	alpha := 1.0
	for k, x := range d {
		if x < 0 {
			alpha = min(alpha, -v[k]/x)
		}
		if math.IsNaN(x) {
			return 0
		}
	}
	return alpha
}
