package mix

import (
	"math"
	"slices"
)

// This file ends the purchase of a problem that was solved coarsely: pods that the part of it left
// out, though other groups have room for them, get nodes, and none is left that another group
// would sell for less.

// rest is what is left of a large problem when some nodes are bought.
type rest struct {
	*large
	left, room []int   // by class and by group
	free       []int64 // memory for holds
	work       int     // multiplications or so that exchanges took
}

// finish returns the nodes with those that are missing, and none that can be exchanged for a
// cheaper one, and the multiplications or so that it took. An exchange makes room that pods may want.
func (l *large) finish(nodes []pattern) (finished []pattern, work int) {
	b := &rest{large: l}
	for i := range l.classes {
		b.left = append(b.left, l.classes[i].Pods)
	}
	for j := range l.groups {
		b.room = append(b.room, max(0, l.groups[j].Room))
	}
	for _, p := range nodes {
		b.room[p.group]--
		for _, c := range p.pods {
			b.left[c.Class] -= c.Pods
		}
	}
	for again := true; again; {
		nodes = b.buy(nodes)
		again = b.exchange(nodes) && b.work < maxWork
	}
	return nodes, b.work
}

// buy buys nodes for the pods that are left, class by class, where there is room, each filled up
// with those of other classes.
func (b *rest) buy(nodes []pattern) []pattern {
	for i := range b.left {
		for b.left[i] > 0 {
			best, least := -1, math.Inf(1)
			for _, j := range b.classes[i].Takes {
				if fit := b.fits(i, j); b.room[j] > 0 && fit > 0 && b.costAlone(j, fit) < least {
					best, least = j, b.costAlone(j, fit)
				}
			}
			if best < 0 {
				break
			}
			p := b.fill(i, best)
			for again := true; again; again = b.room[best] > 0 && b.has(p.pods) {
				b.room[best]--
				for _, c := range p.pods {
					b.left[c.Class] -= c.Pods
				}
				nodes = append(nodes, pattern{best, slices.Clone(p.pods)})
			}
		}
	}
	return nodes
}

// has reports whether so many pods are left.
func (b *rest) has(pods []Count) bool {
	return !slices.ContainsFunc(pods, func(c Count) bool { return b.left[c.Class] < c.Pods })
}

// fill returns a node of a group with pods that are left: those of one class, then those of others.
func (b *rest) fill(class, group int) pattern {
	p, free := pattern{group: group}, slices.Clone(b.groups[group].Allocatable)
	add := func(i int) {
		if pods := min(b.left[i], b.fitsIn(i, group, free)); pods > 0 {
			subtract(free, b.classes[i].Request, pods)
			p.pods = append(p.pods, Count{i, pods})
		}
	}
	add(class)
	for i, left := range b.left {
		if left > 0 && i != class {
			add(i)
		}
	}
	p.sortPods()
	return p
}

// fitsIn returns how many pods of a class fit on a node of a group that holds none of them and has
// so much free; 0 when the group rejects the class.
func (b *rest) fitsIn(class, group int, free []int64) int {
	c := &b.classes[class]
	if _, takes := slices.BinarySearch(c.Takes, group); !takes {
		return 0
	}
	return max(0, fits(c, &Group{Allocatable: free}))
}

// subtract takes off what pods request.
func subtract(free, request []int64, pods int) {
	for k, r := range request {
		free[k] -= int64(pods) * max(0, r)
	}
}

// exchange exchanges nodes for the cheapest that hold the same pods, and reports whether there was
// one. It ends early when maxWork is done: nodes that are left are dearer than they need be.
func (b *rest) exchange(nodes []pattern) (any bool) {
	var same *pattern // the node before, if nothing cheaper was found for it
	for n := range nodes {
		p := &nodes[n]
		if same != nil && comparePatterns(*same, *p) == 0 {
			continue
		}
		if b.work >= maxWork {
			return any
		}
		best := p.group
		b.work += len(b.cost)
		for j, cost := range b.cost {
			if b.room[j] > 0 && cost < b.cost[best] && b.holds(j, p.pods) {
				best = j
			}
		}
		if same = p; best != p.group {
			b.room[p.group]++
			b.room[best]--
			p.group, any, same = best, true, nil
		}
	}
	return any
}

// holds reports whether a node of a group holds such pods.
func (b *rest) holds(group int, pods []Count) bool {
	free := append(b.free[:0], b.groups[group].Allocatable...)
	b.free = free
	b.work += (len(pods) + 1) * len(free)
	for _, c := range pods {
		if b.fitsIn(c.Class, group, free) < c.Pods {
			return false
		}
		subtract(free, b.classes[c.Class].Request, c.Pods)
	}
	return true
}
