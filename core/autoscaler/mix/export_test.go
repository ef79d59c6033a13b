package mix

// This file shows tests two steps of Solve that column generation and a good dual hide.

// FirstFit returns the nodes that first fit fills with pods, given by class and group.
func FirstFit(classes []Class, groups []Group, assign [][]int) []Batch {
	r := relax(classes, groups)
	pods := make([]int, len(r.edges))
	for e := range r.edges {
		pods[e] = assign[r.edges[e].class][r.edges[e].group]
	}
	return batches(r.firstFit(pods))
}

// BuyFromMaster returns what is bought of the master's solution, when finding it has taken so much
// work.
func BuyFromMaster(classes []Class, groups []Group, work int) []Batch {
	r := relax(classes, groups)
	fractions, dual := r.solve()
	m := newMaster(r, dual)
	for _, p := range newBuyer(r).finish(r.firstFit(r.whole(fractions))) {
		m.add(p)
	}
	m.generate()
	m.work, m.knapsack.work = work, work
	return batches(newBuyer(r).fromMaster(m))
}

// MaxWork is how much work column generation may do.
const MaxWork = maxWork

// LowerBound returns the lower bound that Solve would compute for so many pods of each class
// from a dual whose elements dual returns, one after the other.
func LowerBound(classes []Class, groups []Group, pods []int, dual func() float64) float64 {
	r := relax(classes, groups)
	y := make([]float64, r.rows)
	for row := range y {
		y[row] = dual()
	}
	price := make([]float64, len(groups))
	for j := range groups {
		price[j] = groups[j].Price
	}
	p := newPrices(r, price)
	p.set(y, r.scale)
	return p.bound(pods)
}

// RelaxationBound returns the lower bound that the relaxation alone proves for all pods.
func RelaxationBound(classes []Class, groups []Group) float64 {
	r := relax(classes, groups)
	_, dual := r.solve()
	n := 0
	pods := make([]int, len(classes))
	for i := range classes {
		pods[i] = classes[i].Pods
	}
	return LowerBound(classes, groups, pods, func() float64 { n++; return dual[n-1] })
}

// WorthsBound returns the lower bound that worths prove for so many pods of each class: first those of
// the classes' pods, and then those of the groups' room.
func WorthsBound(classes []Class, groups []Group, pods []int, worth func() float64) float64 {
	r, w, price := relax(classes, groups), worths{}, []float64(nil)
	for range classes {
		w.pod = append(w.pod, worth())
	}
	for j := range groups {
		price, w.room = append(price, groups[j].Price), append(w.room, worth())
	}
	bound, _ := w.bound(r, price, pods)
	return bound
}

// SolveCoarsely is Solve as it solves problems whose relaxation would take too long.
func SolveCoarsely(classes []Class, groups []Group) Solution {
	return solve(classes, groups, maxEdges, -1)
}

// SolvePart is SolveCoarsely where each class has one edge.
func SolvePart(classes []Class, groups []Group) Solution { return solve(classes, groups, 0, 0) }

// MaxEdges is how many edges a relaxation may have.
const MaxEdges = maxEdges

// Edges returns how many edges Solve buys from.
func Edges(classes []Class, groups []Group) int {
	return len(purchases(classes, groups, maxEdges, maxStep).r.edges)
}

// Exchange exchanges nodes for cheaper ones. It returns them, and the work that was counted.
func Exchange(classes []Class, groups []Group, nodes []Batch) ([]Batch, int) {
	r := relax(classes, groups)
	b := newBuyer(r)
	var bought []pattern
	for _, n := range nodes {
		for range n.Nodes {
			bought = append(bought, pattern{n.Group, n.Pods})
			b.room[n.Group]--
		}
	}
	before := r.work
	b.exchange(bought)
	return batches(bought), r.work - before
}
