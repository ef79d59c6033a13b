package mix

import (
	"cmp"
	"slices"
)

// This file holds patterns, and the arithmetic of what fits on a node, which is exact.

// pattern is a node of a group with the pods that it holds.
type pattern struct {
	group int
	pods  []Count // ascending by class
}

// comparePatterns orders patterns by group, then by pods.
func comparePatterns(a, b pattern) int {
	return cmp.Or(cmp.Compare(a.group, b.group), slices.CompareFunc(a.pods, b.pods, func(x, y Count) int {
		return cmp.Or(cmp.Compare(x.Class, y.Class), cmp.Compare(x.Pods, y.Pods))
	}))
}

// sortPods brings a pattern's pods into their order.
func (p *pattern) sortPods() {
	slices.SortFunc(p.pods, func(a, b Count) int { return cmp.Compare(a.Class, b.Class) })
}

// count returns how many pods of a class the node holds.
func (p *pattern) count(class int) int {
	for _, c := range p.pods {
		if c.Class == class {
			return c.Pods
		}
	}
	return 0
}

// add adds pods of a class. The caller sorts.
func (p *pattern) add(class, pods int) {
	for n := range p.pods {
		if p.pods[n].Class == class {
			p.pods[n].Pods += pods
			return
		}
	}
	p.pods = append(p.pods, Count{class, pods})
}

// free returns what a node still has of each resource that its group has a row for.
func (r *relaxation) free(p *pattern) []int64 {
	free := slices.Clone(r.groups[p.group].free)
	for _, c := range p.pods {
		r.edges[r.edge(p.group, c.Class)].subtract(free, c.Pods)
	}
	return free
}

// subtract takes off what pods of the edge's class request.
func (e *edge) subtract(free []int64, pods int) {
	for k, request := range e.request {
		free[k] -= int64(pods) * request
	}
}

// fitsIn returns how many more pods of the edge's class fit on a node with so much free, which
// holds some of them already.
func (e *edge) fitsIn(free []int64, already int) int {
	fit := int64(e.fit - already)
	for k, request := range e.request {
		if request > 0 {
			fit = min(fit, free[k]/request)
		}
	}
	return int(max(0, fit))
}

// holds reports whether a node of a group holds such pods.
func (r *relaxation) holds(group int, pods []Count) bool {
	free := slices.Clone(r.groups[group].free)
	for _, c := range pods {
		e := r.edge(group, c.Class)
		if e < 0 || r.edges[e].fitsIn(free, 0) < c.Pods {
			return false
		}
		r.edges[e].subtract(free, c.Pods)
	}
	return true
}
