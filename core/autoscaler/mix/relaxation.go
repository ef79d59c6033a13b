package mix

import (
	"cmp"
	"math"
	"slices"
)

// This file sets up the linear relaxation; matrix.go multiplies by its matrix. What must
// be true:
//
//   - every feasible purchase is a feasible point of the relaxation, so that the optimum
//     is a lower bound of every price;
//   - an edge joins a class and a group only if an empty node of the group holds at least
//     one pod of the class, so every coefficient is finite.
//
// With f the fraction of a class that goes to a group and n the number of a group's
// nodes, the relaxation is
//
//	minimise  Σ cost(j)·n(j) + Σ unmetCost·pods(i)·u(i)
//	class i:  Σ f(i,j) + u(i)                  = 1        every pod goes somewhere
//	edge i,j: alone(i,j)·f(i,j) - n(j) + o(i,j) = 0       alone: nodes that hold all pods of i and no others
//	row j,k:  Σ needs(i,j,k)·f(i,j) - n(j) + s(j,k) = 0   needs: nodes that have so much of resource k
//	room j:   n(j) + w(j)                      = room(j)
//
// over variables of at least 0; o, s and w are slack. The constraint of an edge is true of
// whole pods and not of fractions of pods; it is left out where a resource implies it. So
// are resources of a group that another implies, and room that can't be needed. u is
// there for classes all of whose groups are limited in room.

// edge joins a class with a group that takes it.
type edge struct {
	class, group int
	fit          int       // pods of the class that one empty node holds, at least 1
	request      []int64   // of a pod, by row of the group
	share        []float64 // by row of the group: the part of a node's resource that a pod requests
	needs        []float64 // share times the pods of the class
	alone        float64   // the pods of the class divided by fit
	limit        int       // the edge's constraint, -1 for none
}

// groupRows says what of the relaxation belongs to one group.
type groupRows struct {
	edges     []int   // ascending by class
	resources []int   // that have a row
	free      []int64 // by row: what an empty node has
	row       int     // the first of its rows
	room      int     // its room constraint, -1 for none
}

// relaxation is the linear program in the standard form: minimise c·x subject to A·x = b
// and x >= 0.
type relaxation struct {
	edges  []edge // ascending by class, then by group
	groups []groupRows
	pods   []int // by class; 0 if no group takes it
	room   []int // by group
	unmet  []int // by class its number among u, -1 for none
	// Costs are prices divided by scale, the dearest, and not less than minCost.
	cost  []float64
	scale float64

	// Where each kind of variable begins, f being the first, and how many there are.
	colO, colN, colS, colU, colW, cols int
	// Where each kind of constraint begins, those of edges being the first.
	rowC, rowQ, rowR, rows int
	b, c                   []float64

	work   int     // multiplications or so in the steps that were taken
	worths *worths // by column generation, nil when there was no time for it
}

const (
	// unmetCost is the cost of a pod without a node, where a node costs 1 at most: enough
	// that room is used as far as it goes.
	unmetCost = 100
	// minCost is the cost of a node that is free of charge: it is better not to have it.
	minCost = 1e-6
)

// relax sets up the relaxation of an input.
func relax(classes []Class, groups []Group) *relaxation {
	r := &relaxation{groups: make([]groupRows, len(groups)), pods: make([]int, len(classes)), room: make([]int, len(groups)),
		unmet: make([]int, len(classes))}
	for j := range groups {
		r.room[j] = max(0, groups[j].Room)
	}
	r.cost, r.scale = costs(groups)
	r.join(classes, groups)
	for j := range groups {
		r.addRows(&r.groups[j], classes, &groups[j])
	}
	r.limitEdges()
	r.limitRoom()
	r.number()
	return r
}

// costs returns the groups' prices divided by scale, the dearest, and not less than minCost.
func costs(groups []Group) (cost []float64, scale float64) {
	for j := range groups {
		scale = max(scale, groups[j].Price)
	}
	if scale == 0 {
		scale = 1
	}
	for j := range groups {
		cost = append(cost, max(minCost, groups[j].Price/scale))
	}
	return cost, scale
}

// join makes the edges.
func (r *relaxation) join(classes []Class, groups []Group) {
	for i := range classes {
		class := &classes[i]
		for _, j := range class.Takes {
			fit := fits(class, &groups[j])
			if fit <= 0 || r.room[j] == 0 {
				continue
			}
			r.pods[i] = class.Pods
			r.groups[j].edges = append(r.groups[j].edges, len(r.edges))
			r.edges = append(r.edges, edge{class: i, group: j, fit: fit, limit: -1, alone: float64(class.Pods) / float64(fit)})
		}
	}
}

// edge returns the number of the edge that joins a group with a class, -1 for none.
// It costs O(log classes).
func (r *relaxation) edge(group, class int) int {
	edges := r.groups[group].edges
	at, ok := slices.BinarySearchFunc(edges, class, func(e, class int) int { return cmp.Compare(r.edges[e].class, class) })
	if !ok {
		return -1
	}
	return edges[at]
}

// fits returns how many pods of a class an empty node of a group holds: as many as there
// are at most.
func fits(class *Class, group *Group) int {
	fit := class.Pods
	if class.PerNode > 0 {
		fit = min(fit, class.PerNode)
	}
	for k, request := range class.Request {
		if request > 0 {
			fit = int(min(int64(fit), group.Allocatable[k]/request))
		}
	}
	return fit
}

// addRows gives a group a row for each resource that isn't implied by another, and fills
// in what its edges request of them.
func (r *relaxation) addRows(rows *groupRows, classes []Class, group *Group) {
	share := func(e, k int) float64 {
		if request := classes[r.edges[e].class].Request[k]; request > 0 {
			return float64(request) / float64(group.Allocatable[k])
		}
		return 0
	}
	for k, all := range group.Allocatable {
		if implied(rows.edges, len(group.Allocatable), k, share) {
			continue
		}
		rows.resources = append(rows.resources, k)
		rows.free = append(rows.free, all)
		for _, e := range rows.edges {
			edge := &r.edges[e]
			s := share(e, k)
			edge.request = append(edge.request, max(0, classes[edge.class].Request[k]))
			edge.share = append(edge.share, s)
			edge.needs = append(edge.needs, s*float64(r.pods[edge.class]))
		}
	}
}

// implied reports whether a resource needs no row in a group: no class requests it, or each
// requests at least that share of another resource. Of equals the first has the row.
func implied(edges []int, resources, k int, share func(e, k int) float64) bool {
	requested := false
	for _, e := range edges {
		requested = requested || share(e, k) > 0
	}
	if !requested {
		return true
	}
	for other := range resources {
		least, more := true, false
		for _, e := range edges {
			least = least && share(e, other) >= share(e, k)
			more = more || share(e, other) > share(e, k)
		}
		if least && (more || other < k) {
			return true
		}
	}
	return false
}

// limitEdges gives a constraint to each edge that no resource implies it for.
func (r *relaxation) limitEdges() {
	for e := range r.edges {
		edge := &r.edges[e]
		implied := false
		for _, needs := range edge.needs {
			implied = implied || needs >= edge.alone*(1-1e-9)
		}
		if !implied {
			edge.limit = r.rowC
			r.rowC++
		}
	}
}

// limitRoom gives a constraint to each group that could use more nodes than it has room
// for, and a u to each class that only such groups take. The constraints and the u's get
// their numbers later.
func (r *relaxation) limitRoom() {
	demand := make([]float64, len(r.groups)) // nodes if none held pods of two classes
	for e := range r.edges {
		demand[r.edges[e].group] += math.Ceil(r.edges[e].alone)
	}
	for j := range r.groups {
		r.groups[j].room = -1
		if demand[j] > float64(r.room[j]) {
			r.groups[j].room = 0
		}
	}
	for i := range r.unmet {
		r.unmet[i] = -1
		if r.pods[i] > 0 {
			r.unmet[i] = 0
		}
	}
	for e := range r.edges {
		if r.groups[r.edges[e].group].room < 0 {
			r.unmet[r.edges[e].class] = -1
		}
	}
}

// number numbers variables and constraints, and fills in b and c.
func (r *relaxation) number() {
	limits, resources, unmet, rooms := r.rowC, 0, 0, 0
	for j := range r.groups {
		group := &r.groups[j]
		group.row = resources
		resources += len(group.resources)
		if group.room >= 0 {
			group.room = rooms
			rooms++
		}
	}
	for i := range r.unmet {
		if r.unmet[i] >= 0 {
			r.unmet[i] = unmet
			unmet++
		}
	}
	r.colO = len(r.edges)
	r.colN = r.colO + limits
	r.colS = r.colN + len(r.groups)
	r.colU = r.colS + resources
	r.colW = r.colU + unmet
	r.cols = r.colW + rooms
	r.rowQ = r.rowC + len(r.pods)
	r.rowR = r.rowQ + resources
	r.rows = r.rowR + rooms

	r.b, r.c = make([]float64, r.rows), make([]float64, r.cols)
	for j := range r.groups {
		r.c[r.colN+j] = r.cost[j]
		if room := r.groups[j].room; room >= 0 {
			r.b[r.rowR+room] = float64(r.room[j])
		}
	}
	for i, pods := range r.pods {
		if pods > 0 {
			r.b[r.rowC+i] = 1
		}
		if u := r.unmet[i]; u >= 0 {
			r.c[r.colU+u] = unmetCost * float64(pods)
		}
	}
}
