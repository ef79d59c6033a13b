package mix

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// This file solves problems whose relaxation would take too long, or too much memory. It solves the
// relaxation of a coarse problem, in which similar classes are one and only the groups are left
// that are cheapest for some of them. Its solution is carried over to a part of the problem, in
// which each class is taken by a few groups, and which a purchase is made of. What that leaves
// out is bought of all groups (rest.go). Rules and resources are counted with exactly in any case.
//
// No dual of the part is one of the problem: groups that aren't in it might be cheaper. So there is
// no lower bound.

const (
	// maxEdges is how many edges a relaxation may have: each takes some 300 bytes. What has
	// more is solved coarsely.
	maxEdges = 100_000
	// maxStep is how many multiplications or so a step of the interior-point method may take:
	// what takes more is solved coarsely. A million pods of 1,000 classes and 100 groups take
	// less; their purchase would cost 8 % more coarsely. Some thirty steps of it are three seconds.
	maxStep = 100_000_000
	// coarseClasses and coarseGroups are the most that a coarse problem has.
	coarseClasses, coarseGroups = 100, 48
)

// countEdges returns how many edges the relaxation of a problem has at most.
func countEdges(classes []Class) (n int) {
	for i := range classes {
		n += len(classes[i].Takes)
	}
	return n
}

// stepWork returns how many multiplications or so a step of the interior-point method takes.
func (r *relaxation) stepWork() float64 {
	unknowns, work := 0.0, 0.0
	for j := range r.groups {
		unknowns += float64(len(r.groups[j].resources) + 1)
	}
	for e := 0; e < len(r.edges); {
		class, entries := r.edges[e].class, 0.0
		for ; e < len(r.edges) && r.edges[e].class == class; e++ {
			entries += float64(len(r.edges[e].needs) + 1)
		}
		work += entries * entries / 2
	}
	return work + unknowns*unknowns*unknowns/6
}

// large is a problem that is solved coarsely. It keeps no edges: what others read from them is
// computed when it is needed.
type large struct {
	classes []Class
	groups  []Group
	cost    []float64 // by group, as in the relaxation
	offers  []offer   // memory for cheapest
}

// offer is a group that takes a class, and what a pod costs there if nodes hold the class alone.
type offer struct {
	group int
	cost  float64
}

// fits returns how many pods of a class an empty node of a group holds that takes the class; 0 if
// there is no room for one.
func (l *large) fits(class, group int) int {
	if l.groups[group].Room <= 0 {
		return 0
	}
	return max(0, fits(&l.classes[class], &l.groups[group]))
}

// costAlone returns what a pod costs if nodes hold its class alone, of which each holds fit.
func (l *large) costAlone(group, fit int) float64 { return l.cost[group] / float64(fit) }

// cheapest returns the groups of a class that are allowed and have room, the cheapest for its pods
// alone first, and at most so many.
func (l *large) cheapest(class, most int, allowed func(group int) bool) (groups []int) {
	l.offers = l.offers[:0]
	for _, j := range l.classes[class].Takes {
		if !allowed(j) {
			continue
		}
		if fit := l.fits(class, j); fit > 0 {
			l.offers = append(l.offers, offer{j, l.costAlone(j, fit)})
		}
	}
	slices.SortStableFunc(l.offers, func(a, b offer) int { return cmp.Compare(a.cost, b.cost) })
	for _, o := range l.offers[:min(len(l.offers), most)] {
		groups = append(groups, o.group)
	}
	return groups
}

// purchaseCoarsely returns the nodes to buy, from a relaxation that has maxEdges edges at most, or one for
// each class.
func purchaseCoarsely(classes []Class, groups []Group, maxEdges int) solved {
	l := &large{classes: classes, groups: groups}
	l.cost, _ = costs(groups)
	clusters := l.clusters()
	merged := clusters[:min(len(clusters), coarseClasses)]
	chosen := l.cheapestGroups(merged)
	c := l.coarsen(merged, chosen)
	f, y := c.solve()
	r := relax(l.part(chosen, maxEdges), groups)
	r.work += c.work
	bought := r.purchase(r.fractionsFrom(c, f), r.dualFrom(c, y))
	nodes, work := l.finish(bought)
	r.work += work
	return solved{r: r, nodes: nodes}
}

// part returns the classes, each with as many groups as it may have edges: those of the coarse
// problem before others.
func (l *large) part(chosen []int, maxEdges int) []Class {
	isChosen := make([]bool, len(l.groups))
	for _, j := range chosen {
		isChosen[j] = true
	}
	out, most := slices.Clone(l.classes), max(1, maxEdges/max(1, len(l.classes)))
	for i := range out {
		takes := l.cheapest(i, most, func(j int) bool { return isChosen[j] })
		takes = append(takes, l.cheapest(i, most-len(takes), func(j int) bool { return !isChosen[j] })...)
		slices.Sort(takes)
		out[i].Takes = slices.Clip(takes)
	}
	return out
}

// cluster is some classes that the same groups take, and that request about as much.
type cluster struct {
	classes []int
	pods    int
}

// clusters returns the classes that some group takes, those with the most pods first. What a
// class requests is rounded the more the more clusters there would be.
func (l *large) clusters() (out []*cluster) {
	for _, grain := range []float64{8, 4, 2, 1, 0.5, 0.25, 0} {
		out = l.clustersBy(grain)
		if len(out) <= coarseClasses {
			break
		}
	}
	slices.SortStableFunc(out, func(a, b *cluster) int { return cmp.Compare(b.pods, a.pods) })
	return out
}

// clustersBy returns clusters of classes whose requests are the same when their logarithms are
// rounded, grain to a doubling.
func (l *large) clustersBy(grain float64) (out []*cluster) {
	known := map[string]*cluster{}
	var key []byte
	for i := range l.classes {
		class := &l.classes[i]
		key = binary.AppendVarint(key[:0], int64(class.PerNode))
		for _, request := range class.Request {
			key = binary.AppendVarint(key, int64(math.Floor(grain*math.Log2(1+float64(max(0, request))))))
		}
		requests := len(key)
		for _, j := range class.Takes {
			if l.fits(i, j) > 0 {
				key = binary.AppendVarint(key, int64(j))
			}
		}
		if len(key) == requests {
			continue // no group takes it
		}
		c := known[string(key)]
		if c == nil {
			c = &cluster{}
			known[string(key)] = c
			out = append(out, c)
		}
		c.classes = append(c.classes, i)
		c.pods += class.Pods
	}
	return out
}

// cheapestGroups returns groups that are the cheapest for some cluster, then those that are the
// next for some, and so on, sorted.
func (l *large) cheapestGroups(clusters []*cluster) (out []int) {
	seen, takes := make([]bool, len(l.groups)), make([][]int, len(clusters))
	for i, c := range clusters {
		takes[i] = l.cheapest(c.classes[0], len(l.groups), func(int) bool { return true })
	}
	for rank, any := 0, true; any && len(out) < coarseGroups; rank++ {
		any = false
		for i := range takes {
			if rank >= len(takes[i]) {
				continue
			}
			any = true
			if j := takes[i][rank]; !seen[j] && len(out) < coarseGroups {
				seen[j] = true
				out = append(out, j)
			}
		}
	}
	slices.Sort(out)
	return out
}

// coarse is the relaxation of the coarse problem, and what its classes and groups are there.
type coarse struct {
	*relaxation
	chosen    []int // by group of the coarse problem
	at        []int // by group its number in the coarse problem, -1 for none
	clusterOf []int // by class that of the coarse problem, -1 for none
	clusters  []*cluster
}

// coarsen sets up the relaxation of the coarse problem.
func (l *large) coarsen(clusters []*cluster, chosen []int) *coarse {
	c := &coarse{chosen: chosen, at: make([]int, len(l.groups)), clusters: clusters}
	for j := range c.at {
		c.at[j] = -1
	}
	var few []Group
	for at, j := range chosen {
		c.at[j] = at
		few = append(few, l.groups[j])
	}
	var merged []Class
	for _, x := range clusters {
		merged = append(merged, l.mergedClass(x, c.at))
	}
	c.relaxation = relax(merged, few)
	c.clusterOf = make([]int, len(l.classes))
	for i := range c.clusterOf {
		c.clusterOf[i] = -1
	}
	for i, x := range clusters {
		for _, class := range x.classes {
			c.clusterOf[class] = i
		}
	}
	return c
}

// mergedClass returns the pods of a cluster as one class, which requests what its pods do on
// the average.
func (l *large) mergedClass(c *cluster, at []int) Class {
	first := &l.classes[c.classes[0]]
	out := Class{Pods: c.pods, PerNode: first.PerNode, Request: make([]int64, len(first.Request))}
	for k := range out.Request {
		sum := 0.0
		for _, i := range c.classes {
			sum += float64(max(0, l.classes[i].Request[k])) * (float64(l.classes[i].Pods) / float64(max(1, c.pods)))
		}
		out.Request[k] = int64(sum)
	}
	for _, j := range first.Takes {
		if at[j] >= 0 && l.fits(c.classes[0], j) > 0 {
			out.Takes = append(out.Takes, at[j])
		}
	}
	return out
}

// edgeFor returns the edge of the coarse problem that an edge is merged into, -1 for none.
func (c *coarse) edgeFor(e *edge) int {
	if i, at := c.clusterOf[e.class], c.at[e.group]; i >= 0 && at >= 0 {
		return c.edge(at, i)
	}
	return -1
}

// fractionsFrom returns the fraction of each edge, f having those of the coarse problem; where a
// class's come to nothing, all its pods go to the group that is the cheapest for them alone.
func (r *relaxation) fractionsFrom(c *coarse, f []float64) []float64 {
	fractions := make([]float64, len(r.edges))
	for from, to := 0, 0; from < len(r.edges); from = to {
		sum, cheapest := 0.0, from
		for to = from; to < len(r.edges) && r.edges[to].class == r.edges[from].class; to++ {
			if e := c.edgeFor(&r.edges[to]); e >= 0 {
				fractions[to] = f[e]
				sum += f[e]
			}
			if r.costAlone(to) < r.costAlone(cheapest) {
				cheapest = to
			}
		}
		if sum < 1e-6 {
			fractions[cheapest] = 1
		}
	}
	return fractions
}

// costAlone returns what a pod costs if nodes hold its class alone.
func (r *relaxation) costAlone(e int) float64 {
	return r.cost[r.edges[e].group] / float64(r.edges[e].fit)
}

// dualFrom carries over what the coarse problem says a group's constraints and its room are
// worth. Those of a group that isn't in it are worth what those of the others are on the average,
// as shares of the node's price.
func (r *relaxation) dualFrom(c *coarse, y []float64) []float64 {
	dual := make([]float64, r.rows)
	resources, limits := map[int]float64{}, make([]float64, len(c.pods)) // on the average, by resource and by cluster
	for at, j := range c.chosen {
		group := &c.groups[at]
		for k, resource := range group.resources {
			worth := max(0, -y[c.rowQ+group.row+k])
			resources[resource] += worth / r.cost[j]
			if to := slices.Index(r.groups[j].resources, resource); to >= 0 {
				dual[r.rowQ+r.groups[j].row+to] = -worth
			}
		}
		for _, e := range group.edges {
			if l := c.edges[e].limit; l >= 0 {
				limits[c.edges[e].class] += max(0, -y[l]) / r.cost[j]
			}
		}
		if group.room >= 0 && r.groups[j].room >= 0 {
			dual[r.rowR+r.groups[j].room] = y[c.rowR+group.room]
		}
	}
	for j := range r.groups {
		if group := &r.groups[j]; c.at[j] < 0 {
			for k, resource := range group.resources {
				dual[r.rowQ+group.row+k] = -resources[resource] * r.cost[j]
			}
		}
	}
	r.limitDuals(dual, c, y, limits)
	return dual
}

// limitDuals sets the dual of the edges' constraints. limits has by cluster what its edges'
// constraints are worth on the average.
func (r *relaxation) limitDuals(dual []float64, c *coarse, y, limits []float64) {
	for e := range r.edges {
		edge := &r.edges[e]
		i := c.clusterOf[edge.class]
		if i < 0 || edge.limit < 0 {
			continue
		}
		worth := limits[i] * r.cost[edge.group]
		if c.at[edge.group] >= 0 {
			worth = 0
			if k := c.edgeFor(edge); k >= 0 && c.edges[k].limit >= 0 {
				worth = max(0, -y[c.edges[k].limit])
			}
		}
		dual[edge.limit] = -worth * float64(r.pods[edge.class]) / float64(max(1, c.clusters[i].pods))
	}
}
