package mix

import (
	"cmp"
	"slices"
)

// This file gives up nodes that the others have room for. A relaxation with little room in its cheap
// groups buys these first, and then a dear node for the rest, which may hold all pods by itself.

// maxClosing limits what closing nodes takes, in multiplications or so: the openb pod list needs a third
// of it, and of many more nodes few can be closed.
const maxClosing = maxWork / 8

// closing are nodes of which some are given up.
type closing struct {
	*buyer
	nodes  []pattern
	free   [][]int64 // by node
	closed []bool
	work   int
}

// move is a number of pods that another node takes.
type move struct{ to, class, pods int }

// closeNodes returns the nodes without those whose pods fit on others, which then have them. The
// dearest are tried first. It ends early when maxClosing is done.
func (b *buyer) closeNodes(nodes []pattern) []pattern {
	c := &closing{buyer: b, nodes: nodes, closed: make([]bool, len(nodes))}
	order := make([]int, len(nodes))
	for n := range nodes {
		order[n] = n
		c.free = append(c.free, b.r.free(&nodes[n]))
	}
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Or(cmp.Compare(b.r.cost[nodes[y].group], b.r.cost[nodes[x].group]), comparePatterns(nodes[x], nodes[y]))
	})
	var stays *pattern // the node before, if its pods fit nowhere else
	for _, n := range order {
		if c.work >= maxClosing {
			break
		}
		if stays != nil && comparePatterns(*stays, nodes[n]) == 0 || b.r.cost[nodes[n].group] <= minCost {
			continue // a node free of charge isn't worth giving up
		}
		if stays = &nodes[n]; c.tryToClose(n) {
			stays = nil
		}
	}
	b.r.work += c.work
	var left []pattern
	for n := range nodes {
		if c.closed[n] {
			b.room[nodes[n].group]++
			continue
		}
		left = append(left, nodes[n])
	}
	return left
}

// tryToClose closes a node if other nodes have room for all of its pods.
func (c *closing) tryToClose(n int) bool {
	var moves []move
	c.closed[n] = true
	for _, x := range c.nodes[n].pods {
		left := x.Pods
		for to := 0; to < len(c.nodes) && left > 0; to++ {
			if fit := min(left, c.fits(to, x.Class)); fit > 0 {
				c.move(move{to, x.Class, fit})
				moves = append(moves, move{to, x.Class, fit})
				left -= fit
			}
		}
		if left > 0 {
			c.closed[n] = false
			break
		}
	}
	if !c.closed[n] {
		for _, m := range moves {
			c.move(move{m.to, m.class, -m.pods})
		}
	}
	for _, m := range moves {
		c.nodes[m.to].pods = slices.DeleteFunc(c.nodes[m.to].pods, func(x Count) bool { return x.Pods == 0 })
		c.nodes[m.to].sortPods()
	}
	return c.closed[n]
}

// fits returns how many more pods of a class fit on a node.
func (c *closing) fits(n, class int) int {
	p := &c.nodes[n]
	e := -1
	if c.work++; !c.closed[n] {
		e = c.r.edge(p.group, class)
	}
	if e < 0 {
		return 0
	}
	c.work += len(c.free[n])
	return c.r.edges[e].fitsIn(c.free[n], p.count(class))
}

func (c *closing) move(m move) {
	p := &c.nodes[m.to]
	c.r.edges[c.r.edge(p.group, m.class)].subtract(c.free[m.to], m.pods)
	p.add(m.class, m.pods)
}
