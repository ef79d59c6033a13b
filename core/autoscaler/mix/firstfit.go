package mix

import (
	"cmp"
	"slices"
)

// This file makes the purchase that column generation begins with, and that remains where
// there is no time for it.

// whole makes the relaxation's fractions whole: by edge, how many pods of the class go to
// the group. Pods that are left when all fractions are rounded down go one by one to the
// edges that lost most. Pods that the relaxation has no room for are nowhere.
func (r *relaxation) whole(fractions []float64) []int {
	out := make([]int, len(r.edges))
	for from := 0; from < len(r.edges); {
		class, to, sum := r.edges[from].class, from, 0.0
		for ; to < len(r.edges) && r.edges[to].class == class; to++ {
			sum += fractions[to]
		}
		pods := float64(r.pods[class])
		left := int(min(1, sum)*pods + 0.5)
		order := make([]int, 0, to-from)
		for e := from; e < to; e++ {
			out[e] = min(left, int(fractions[e]*pods+1e-6))
			left -= out[e]
			order = append(order, e)
		}
		slices.SortStableFunc(order, func(a, b int) int {
			return cmp.Compare(fractions[b]*pods-float64(out[b]), fractions[a]*pods-float64(out[a]))
		})
		for n := range left {
			out[order[n%len(order)]]++
		}
		from = to
	}
	return out
}

// firstFit packs pods, given by edge, on nodes of their groups as far as there is room:
// the classes first that take the largest part of a node (first fit decreasing). It costs
// the number of a group's classes times that of its nodes.
func (r *relaxation) firstFit(pods []int) (nodes []pattern) {
	for j := range r.groups {
		order := slices.DeleteFunc(slices.Clone(r.groups[j].edges), func(e int) bool { return pods[e] == 0 })
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.edges[b].largest(), r.edges[a].largest()) })
		var packed []pattern
		var free [][]int64
		for _, e := range order {
			edge, left := &r.edges[e], pods[e]
			for n := 0; left > 0; n++ {
				if n == len(packed) {
					if n == r.room[j] {
						break
					}
					packed = append(packed, pattern{group: j})
					free = append(free, slices.Clone(r.groups[j].free))
				}
				if fit := min(left, edge.fitsIn(free[n], 0)); fit > 0 {
					edge.subtract(free[n], fit)
					packed[n].pods = append(packed[n].pods, Count{edge.class, fit})
					left -= fit
				}
			}
		}
		for n := range packed {
			packed[n].sortPods()
		}
		nodes = append(nodes, packed...)
	}
	return nodes
}

// largest returns the largest part of a node's resource that a pod requests.
func (e *edge) largest() (share float64) {
	for _, s := range e.share {
		share = max(share, s)
	}
	return share
}
