package mix

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// This file finds fractions and a dual for problems whose relaxation would take too long: it
// solves that of a coarse problem, in which similar classes are one and only the groups are
// left that are cheapest for some of them, and carries its solution over. The bound from the
// dual is worse then, and as true as any (prices.go); rules and resources are counted with
// exactly in any case (purchase.go).

const (
	// maxStep is how many multiplications or so a step of the interior-point method may take:
	// what takes more is solved coarsely. Some forty steps of it are about a second.
	maxStep = 10_000_000
	// coarseClasses and coarseGroups are the most that a coarse problem has.
	coarseClasses, coarseGroups = 100, 48
)

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

// cluster is some classes that the same groups take, and that request about as much.
type cluster struct {
	classes []int
	pods    int
	edges   []int // of the first class, the cheapest for a pod alone first
}

// solveCoarsely returns the fraction of each edge, and a dual.
func (r *relaxation) solveCoarsely(classes []Class, groups []Group) (fractions, dual []float64) {
	clusters := r.clusters(classes)
	chosen := r.cheapestGroups(clusters)
	at := make([]int, len(groups)) // in the coarse problem, -1 for none
	for j := range at {
		at[j] = slices.Index(chosen, j)
	}
	var few []Group
	for _, j := range chosen {
		few = append(few, groups[j])
	}
	var merged []Class
	for _, c := range clusters[:min(len(clusters), coarseClasses)] {
		merged = append(merged, r.mergedClass(c, classes, at))
	}
	coarse := relax(merged, few)
	f, y := coarse.solve()
	r.work += coarse.work
	fractions = make([]float64, len(r.edges))
	for i, c := range clusters {
		for _, class := range c.classes {
			r.spread(fractions, class, func(group int) float64 {
				if i < len(merged) && at[group] >= 0 {
					if e := coarse.edge(at[group], i); e >= 0 {
						return f[e]
					}
				}
				return 0
			})
		}
	}
	return fractions, r.dualFrom(coarse, y, chosen, clusters)
}

// clusters returns the classes that some group takes, those with the most pods first. What a
// class requests is rounded the more the more clusters there would be.
func (r *relaxation) clusters(classes []Class) (out []*cluster) {
	for _, grain := range []float64{8, 4, 2, 1, 0.5, 0.25, 0} {
		out = r.clustersBy(classes, grain)
		if len(out) <= coarseClasses {
			break
		}
	}
	slices.SortStableFunc(out, func(a, b *cluster) int { return cmp.Compare(b.pods, a.pods) })
	return out
}

// clustersBy returns clusters of classes whose requests are the same when their logarithms are
// rounded, grain to a doubling.
func (r *relaxation) clustersBy(classes []Class, grain float64) (out []*cluster) {
	known := map[string]*cluster{}
	var key []byte
	for e := 0; e < len(r.edges); {
		class := r.edges[e].class
		key = binary.AppendVarint(key[:0], int64(classes[class].PerNode))
		for _, request := range classes[class].Request {
			key = binary.AppendVarint(key, int64(math.Floor(grain*math.Log2(1+float64(max(0, request))))))
		}
		from := e
		for ; e < len(r.edges) && r.edges[e].class == class; e++ {
			key = binary.AppendVarint(key, int64(r.edges[e].group))
		}
		c := known[string(key)]
		if c == nil {
			c = &cluster{}
			for k := from; k < e; k++ {
				c.edges = append(c.edges, k)
			}
			slices.SortStableFunc(c.edges, func(a, b int) int { return cmp.Compare(r.costAlone(a), r.costAlone(b)) })
			known[string(key)] = c
			out = append(out, c)
		}
		c.classes = append(c.classes, class)
		c.pods += r.pods[class]
	}
	return out
}

// costAlone returns what a pod costs if nodes hold its class alone.
func (r *relaxation) costAlone(e int) float64 {
	return r.cost[r.edges[e].group] / float64(r.edges[e].fit)
}

// cheapestGroups returns groups that are the cheapest for some cluster, then those that are the
// next for some, and so on, sorted.
func (r *relaxation) cheapestGroups(clusters []*cluster) (out []int) {
	seen := make([]bool, len(r.groups))
	for rank, any := 0, true; any && len(out) < coarseGroups; rank++ {
		any = false
		for _, c := range clusters {
			if rank >= len(c.edges) {
				continue
			}
			any = true
			if j := r.edges[c.edges[rank]].group; !seen[j] && len(out) < coarseGroups {
				seen[j] = true
				out = append(out, j)
			}
		}
	}
	slices.Sort(out)
	return out
}

// mergedClass returns the pods of a cluster as one class, which requests what its pods do on
// the average.
func (r *relaxation) mergedClass(c *cluster, classes []Class, at []int) Class {
	first := &classes[c.classes[0]]
	out := Class{Pods: c.pods, PerNode: first.PerNode, Request: make([]int64, len(first.Request))}
	for k := range out.Request {
		sum := 0.0
		for _, i := range c.classes {
			sum += float64(max(0, classes[i].Request[k])) * (float64(r.pods[i]) / float64(max(1, c.pods)))
		}
		out.Request[k] = int64(sum)
	}
	for _, e := range c.edges {
		if j := at[r.edges[e].group]; j >= 0 {
			out.Takes = append(out.Takes, j)
		}
	}
	slices.Sort(out.Takes)
	return out
}

// spread sets the fractions of a class; where they come to nothing all pods go to the group that
// is the cheapest for them alone.
func (r *relaxation) spread(fractions []float64, class int, fraction func(group int) float64) {
	from := r.firstEdge(class)
	sum, cheapest := 0.0, from
	for e := from; e < len(r.edges) && r.edges[e].class == class; e++ {
		fractions[e] = fraction(r.edges[e].group)
		sum += fractions[e]
		if r.costAlone(e) < r.costAlone(cheapest) {
			cheapest = e
		}
	}
	if sum < 1e-6 {
		fractions[cheapest] = 1
	}
}

// dualFrom carries over what the coarse problem says a group's constraints and its room are
// worth. Those of a group that isn't in it are worth what those of the others are on the average,
// as shares of the node's price.
func (r *relaxation) dualFrom(coarse *relaxation, y []float64, chosen []int, clusters []*cluster) []float64 {
	dual := make([]float64, r.rows)
	resources, limits := map[int]float64{}, make([]float64, len(coarse.pods)) // on the average, by resource and by cluster
	inCoarse := make([]int, len(r.groups))
	for j := range inCoarse {
		inCoarse[j] = -1
	}
	for at, j := range chosen {
		inCoarse[j] = at
		group := &coarse.groups[at]
		for k, resource := range group.resources {
			worth := max(0, -y[coarse.rowQ+group.row+k])
			resources[resource] += worth / r.cost[j]
			if to := slices.Index(r.groups[j].resources, resource); to >= 0 {
				dual[r.rowQ+r.groups[j].row+to] = -worth
			}
		}
		for _, e := range group.edges {
			if l := coarse.edges[e].limit; l >= 0 {
				limits[coarse.edges[e].class] += max(0, -y[l]) / r.cost[j]
			}
		}
		if group.room >= 0 && r.groups[j].room >= 0 {
			dual[r.rowR+r.groups[j].room] = y[coarse.rowR+group.room]
		}
	}
	for j := range r.groups {
		if group := &r.groups[j]; inCoarse[j] < 0 {
			for k, resource := range group.resources {
				dual[r.rowQ+group.row+k] = -resources[resource] * r.cost[j]
			}
		}
	}
	for i, c := range clusters[:len(coarse.pods)] {
		for _, class := range c.classes {
			part := float64(r.pods[class]) / float64(max(1, c.pods))
			for e := r.firstEdge(class); e < len(r.edges) && r.edges[e].class == class; e++ {
				l, j := r.edges[e].limit, r.edges[e].group
				if l < 0 {
					continue
				}
				worth := limits[i] * r.cost[j]
				if at := inCoarse[j]; at >= 0 {
					worth = 0
					if k := coarse.edge(at, i); k >= 0 && coarse.edges[k].limit >= 0 {
						worth = max(0, -y[coarse.edges[k].limit])
					}
				}
				dual[l] = -worth * part
			}
		}
	}
	return dual
}

// firstEdge returns the first edge of a class that has any.
func (r *relaxation) firstEdge(class int) int {
	e, _ := slices.BinarySearchFunc(r.edges, class, func(e edge, class int) int { return cmp.Compare(e.class, class) })
	return e
}
