// Package mix finds which mix of node groups holds pending pods for the least money, and
// proves how little any purchase could cost. It is the mathematics of the cost expander
// and knows nothing of Kubernetes: classes, groups and resources are indexes.
//
// Solve works in three steps:
//
//  1. The relaxation (relaxation.go, matrix.go) sends fractions of classes to groups and
//     buys fractions of nodes. An interior-point method solves it (interior.go, newton.go).
//     Its dual gives a price to each resource of each group, and from these prices alone
//     the lower bound is computed (prices.go): whatever is wrong with them makes the
//     bound worse, never false. Column generation gives another bound, in which nodes hold
//     whole pods (worths.go); the higher of the two counts.
//  2. Column generation (master.go, knapsack.go, simplex.go) finds patterns, each a node
//     with the whole pods that it holds, and how many nodes of each pattern hold all pods
//     for the least money, in fractions.
//  3. The purchase (purchase.go) makes these numbers whole, with resources counted
//     exactly. Where column generation comes to nothing better, it is what first fit
//     makes of the relaxation (firstfit.go).
//
// Where the relaxation would take too long or too much memory, that of a coarser problem is solved
// in its place (coarse.go).
//
// Column generation alone, from first fit, was measured beside this: docs/measurements/mix.md.
//
// Equal input gives equal output: there is no randomness, clock or order of a map. Work is
// limited: maxSteps of the interior-point method, of no more than maxStep each, and maxWork of
// column generation.
package mix

import "slices"

// Group is a node group that nodes may be bought of.
type Group struct {
	Price float64 // of a node, per hour; at least 0
	// Allocatable is by resource, in its smallest unit, what pods may request of an empty
	// node: without what daemon pods take there, and with the number of pods as one of
	// the resources.
	Allocatable []int64
	Room        int // nodes that may be bought
}

// Class is a number of pending pods that no rule tells apart.
type Class struct {
	Pods    int
	Request []int64 // of one pod, by resource, in the unit of Allocatable
	// Takes are the groups whose empty node takes a pod of the class, ascending. A group
	// with less Allocatable than the request is ignored.
	Takes []int
	// PerNode is how many pods of the class may share a node by other rules than
	// resources, such as 1 for anti-affinity to each other by hostname; 0 for any number.
	PerNode int
}

// Solution is a purchase, and the proof of how good it is.
type Solution struct {
	// LowerBound is what any purchase costs at least, per hour, that stays within the
	// groups' room and holds as many pods of each class as this one does; 0 when that isn't
	// known, as of a problem that was solved coarsely.
	LowerBound float64
	Price      float64 // of the nodes, per hour
	// Nodes are what to buy, ascending by group. The pods of each are part of the purchase:
	// packed in another way, by first fit say, they may need a tenth more nodes. No group with
	// room left holds the pods of one of these nodes for less; so a GPU isn't bought for pods
	// that need none where a cheaper node would do. Only for a large problem, whose exchanges take
	// more than maxWork, that may be otherwise.
	Nodes []Batch
	// Held is by class how many pods the nodes hold. Only pods that no group takes, or that
	// there is no room for, are left out.
	Held []int
	// Work is how many multiplications or so it took to solve the relaxation, to generate columns
	// and to exchange nodes of a large problem.
	Work int
}

// Batch is a number of nodes of one group that hold equal pods.
type Batch struct {
	Group, Nodes int
	Pods         []Count // of each of the nodes, ascending by class
}

// Count is a number of pods of a class.
type Count struct{ Class, Pods int }

// Solve finds a purchase for the classes.
func Solve(classes []Class, groups []Group) Solution {
	return solve(classes, groups, maxEdges, maxStep)
}

// solve is Solve where a relaxation may have so many edges, and a step of the interior-point method
// may take so many multiplications.
func solve(classes []Class, groups []Group, maxEdges int, maxStep float64) Solution {
	return solution(purchases(classes, groups, maxEdges, maxStep), classes, groups)
}

// solution says what the nodes cost, what they hold, and what is proved about them.
func solution(x solved, classes []Class, groups []Group) Solution {
	s := Solution{Nodes: batches(x.nodes), Held: make([]int, len(classes)), Work: x.r.work}
	for _, p := range x.nodes {
		s.Price += groups[p.group].Price
		for _, c := range p.pods {
			s.Held[c.Class] += c.Pods
		}
	}
	if x.dual != nil {
		real := make([]float64, len(groups))
		for j := range groups {
			real[j] = groups[j].Price
		}
		p := newPrices(x.r, real)
		p.set(x.dual, x.r.scale)
		s.LowerBound = p.bound(s.Held)
		if w := x.r.worths; w != nil {
			bound, work := w.bound(x.r, real, s.Held)
			s.LowerBound, s.Work = max(s.LowerBound, bound), s.Work+work
		}
	}
	return s
}

// solved are the nodes to buy, and how they were found.
type solved struct {
	r     *relaxation
	dual  []float64 // of r; nil when r is a part of the problem only, so that it gives no lower bound
	nodes []pattern
}

// purchases returns the nodes to buy.
func purchases(classes []Class, groups []Group, maxEdges int, maxStep float64) solved {
	if countEdges(classes) <= maxEdges {
		if r := relax(classes, groups); r.stepWork() <= maxStep {
			fractions, dual := r.solve()
			return solved{r, dual, r.purchase(fractions, dual)}
		}
	}
	return purchaseCoarsely(classes, groups, maxEdges)
}

// batches puts equal nodes together, in the order of their groups and pods.
func batches(nodes []pattern) (out []Batch) {
	sorted := slices.Clone(nodes)
	slices.SortStableFunc(sorted, comparePatterns)
	for n, p := range sorted {
		if n > 0 && comparePatterns(sorted[n-1], p) == 0 {
			out[len(out)-1].Nodes++
			continue
		}
		out = append(out, Batch{p.group, 1, p.pods})
	}
	return out
}
