package engine

import (
	"slices"

	"github.com/berthproject/berth/core/cluster"
)

// How a column is filled: all nodes are evaluated and put into groups, which is what the first
// answer of a class costs. It comes to the same as if evaluate were asked about every node of an
// empty column, in the order of their indices, and costs less: the size of each group is known before
// its lists are made, a node's group is looked for where that of its domain was found last, and the
// maxima in the indexes of groups are found once at the end.

// placedNodes are the lists of a group that is being filled, by slot.
type placedNodes struct {
	nodes []cluster.NodeIndex
	keys  []scoreKey
}

// enterAll evaluates all nodes of a column without groups, whose cells hold anything, and puts them
// into groups.
func (c *column) enterAll() {
	keys, sizes := c.scratch.keysOf(len(c.cells)), c.scratch.sizes[:0]
	parallel := c.options.Workers > 1 && c.source == nil
	if parallel {
		c.clearCells(0, len(c.cells))
		c.askAll(keys)
	}
	f := groupFinder{column: c, parts: c.scratch.parts, last: c.scratch.lastOf[:0]}
	b := &c.scratch.block
	for from := 0; from < len(c.cells); from += blockSize {
		to := min(from+blockSize, len(c.cells))
		c.fill(b, from, to)
		if !parallel {
			c.clearCells(from, to)
			c.ask(b)
			b.copyTo(keys)
		}
		f.read(b.all())
		f.numbers(b.groups[:b.n])
		for j, n := range b.all() {
			id := b.groups[j]
			if int(id) == len(sizes) {
				sizes = append(sizes, 0)
			}
			cl := &c.cells[n.Index]
			c.countFailing(cl)
			cl.group, cl.slot = id, sizes[id]
			sizes[id]++
			if cl.ok = keys[n.Index] != 0; cl.ok {
				c.feasible[id]++
			}
		}
	}
	c.scratch.sizes, c.scratch.parts, c.scratch.lastOf = sizes, f.parts, f.last
	c.fillGroups(keys, sizes)
}

// clearCells makes the cells from one index to another those of no node.
func (c *column) clearCells(from, to int) {
	cells := c.cells[from:to]
	for i := range cells {
		cells[i] = cell{group: -1}
	}
}

// groupFinder finds the groups of the nodes of a column, a block at a time.
type groupFinder struct {
	*column
	// parts are the structural keys of the block's nodes: the first number of each node, then the
	// second of each, in the order in which readKey has them.
	parts [][blockSize]int32
	// last has the group that was found last for a node of each domain of the first topology, one
	// place further on than the domain's number (NoDomain is -1); -1 where none was. Without
	// topologies it has the last one of all.
	last []int32
}

// read reads the structural keys of a block's nodes.
func (f *groupFinder) read(nodes []*cluster.Node) {
	f.parts = f.parts[:0]
	for _, t := range f.topologies {
		out := f.part()
		for j, n := range nodes {
			out[j%blockSize] = int32(t.Of(n.Index))
		}
	}
	for k := range f.groupRules {
		f.groupRules[k].staticKeys(nodes, f.part()[:len(nodes)])
	}
	if !f.private {
		return
	}
	for k := range f.groupRules {
		rule, out := f.groupRules[k].GroupRule, f.part()
		for j, n := range nodes {
			out[j%blockSize] = rule.HostKey(n.Index)
		}
	}
}

// staticKeys sets out[j] to the StaticKey of nodes[j].
func (r *groupRule) staticKeys(nodes []*cluster.Node, out []int32) {
	if r.many != nil {
		r.many.StaticKeys(nodes, out)
		return
	}
	for j, n := range nodes {
		out[j] = r.StaticKey(&n.NodeBasics)
	}
}

// part returns room for the next number of all keys.
func (f *groupFinder) part() *[blockSize]int32 {
	if k := len(f.parts); k < cap(f.parts) {
		f.parts = f.parts[:k+1]
	} else {
		f.parts = append(f.parts, [blockSize]int32{})
	}
	return &f.parts[len(f.parts)-1]
}

// numbers sets out[j] to the number of the group of the j-th node of the block that was read. A group
// is made where there is none.
func (f *groupFinder) numbers(out []int32) {
	parts, groups, last := f.parts, f.groups, f.last
	for j := range out {
		at := 0
		if len(f.topologies) > 0 {
			at = int(parts[0][j%blockSize]) + 1
		}
		if at < len(last) && last[at] >= 0 && isOf(parts, j, groups[last[at]].key) {
			out[j] = last[at]
			continue
		}
		out[j] = f.lookUp(j, at)
		groups, last = f.groups, f.last
	}
}

// isOf reports whether a structural key is that of the j-th node of a block.
func isOf(parts [][blockSize]int32, j int, key []int32) bool {
	key = key[:len(parts)]
	for k := range parts {
		if parts[k][j%blockSize] != key[k] {
			return false
		}
	}
	return true
}

// lookUp returns the number of the group of the j-th node, and notes it at a place of last.
func (f *groupFinder) lookUp(j, at int) int32 {
	f.key = f.key[:0]
	for k := range f.parts {
		f.key = append(f.key, f.parts[k][j])
	}
	for len(f.last) <= at {
		f.last = append(f.last, -1)
	}
	f.last[at] = f.numberOfKey()
	return f.last[at]
}

// fillGroups makes the lists and the index of each group, whose nodes and sizes are known.
func (c *column) fillGroups(keys []scoreKey, sizes []int32) {
	lists := c.scratch.lists[:0]
	for id, g := range c.groups {
		g.nodes = slices.Grow(g.nodes, int(sizes[id]))[:sizes[id]]
		lists = append(lists, placedNodes{g.nodes, g.tree.sized(int(sizes[id]))})
	}
	for i := range c.cells {
		if cl := &c.cells[i]; cl.group >= 0 {
			list := &lists[cl.group]
			list.nodes[cl.slot], list.keys[cl.slot] = cluster.NodeIndex(i), keys[i]
		}
	}
	for id, g := range c.groups {
		g.tree.fill()
		c.best[id] = g.tree.top()
	}
	clear(lists)
	c.scratch.lists = lists
}
