package engine

import (
	"encoding/binary"
	"slices"

	"github.com/berthproject/berth/core/cluster"
)

// The groups of a column: nodes that no structural key tells apart.
//
// The structural key of a node is its domain under each topology of the column, the
// StaticKey of each group rule, and in a private column the HostKey of each. Scores are
// no part of it, or nodes would change groups at each placement.
//
// Groups have numbers. What group rules read of a group (framework.Groups) lies ready in
// slices by that number, so that a decision with many groups is a pass over dense slices.
// A number whose group has lost its last node is free: feasible and best are 0 there, so
// that passes need not know, and the next new group takes it.

// group is one group of a column.
type group struct {
	key   []int32             // structural
	nodes []cluster.NodeIndex // by slot, in no order that means anything
	tree  tree                // their keys, by slot
}

// clear takes all nodes out of the group. It keeps memory.
func (g *group) clear() {
	g.nodes = g.nodes[:0]
	g.tree.levels, g.tree.n = g.tree.levels[:0], 0
}

// maxSpare is of how many groups the memory is kept that have lost their nodes one by one: where
// nodes go from one group to another and back, as candidates of the autoscaler do, the groups
// that they leave and come to take turns with it.
const maxSpare = 2

// groupIndex is the groups of a column by number and by structural key.
type groupIndex struct {
	groups   []*group           // nil where free
	feasible []int32            // how many nodes of the group the local rules allow
	best     []scoreKey         // the highest key in the group's tree
	static   [][]int32          // StaticKey, by group rule and group
	host     [][]int32          // HostKey, by group rule and group; in a private column
	domains  [][]cluster.Domain // by topology of the column and group
	free     []int32            // free numbers
	byKey    map[string]int32   // number by structural key
	spare    []*group           // without nodes; their memory is that of the next new groups

	key    []int32 // scratch: the structural key that regroup is about
	keyBuf []byte  // scratch: a structural key as bytes
}

// reset forgets all groups, for a column with so many topologies and group rules. It keeps the
// memory of lists, and that of the groups for those that come next: they are likely the same,
// and come in the same order.
func (x *groupIndex) reset(topologies, rules int) {
	x.spare = x.spare[:0]
	for _, g := range slices.Backward(x.groups) {
		if g != nil {
			g.clear()
			x.spare = append(x.spare, g)
		}
	}
	clear(x.groups)
	x.groups, x.free = x.groups[:0], x.free[:0]
	x.feasible, x.best = x.feasible[:0], x.best[:0]
	x.static, x.host = emptyLists(x.static, rules), emptyLists(x.host, rules)
	x.domains = emptyLists(x.domains, topologies)
	if x.byKey == nil {
		x.byKey = map[string]int32{}
	}
	clear(x.byKey)
}

// emptyLists returns n empty lists with the memory of those that there are.
func emptyLists[T any](lists [][]T, n int) [][]T {
	lists = slices.Grow(lists[:0], n)[:n]
	for i := range lists {
		lists[i] = lists[i][:0]
	}
	return lists
}

// regroup puts a node into the group of its structural key. Its slot there has key 0
// if the group is another than before.
func (c *column) regroup(n *cluster.Node, cl *cell) {
	c.readKey(n)
	if cl.group >= 0 && slices.Equal(c.groups[cl.group].key, c.key) {
		return
	}
	c.remove(n.Index)
	c.join(n, cl).tree.add(0)
}

// join makes a node that is in no group the last one of the group of the structural key c.key,
// which it returns. Its slot in the tree is for the caller to add.
func (c *column) join(n *cluster.Node, cl *cell) *group {
	id := c.numberOfKey()
	g := c.groups[id]
	cl.group, cl.slot = id, int32(len(g.nodes))
	g.nodes = append(g.nodes, n.Index)
	return g
}

// readKey reads a node's structural key into c.key.
func (c *column) readKey(n *cluster.Node) {
	c.key = c.key[:0]
	for _, t := range c.topologies {
		c.key = append(c.key, int32(t.Of(n.Index)))
	}
	for k := range c.groupRules {
		c.key = append(c.key, c.groupRules[k].StaticKey(&n.NodeBasics))
	}
	if c.private {
		for k := range c.groupRules {
			c.key = append(c.key, c.groupRules[k].HostKey(n.Index))
		}
	}
}

// fewGroups is how many groups are looked through for a key before the map is: for as many as
// there are zones that costs less.
const fewGroups = 8

// numberOfKey returns the number of the group with the structural key c.key, which is
// made if there is none.
func (c *column) numberOfKey() int32 {
	for id, g := range c.groups[:min(len(c.groups), fewGroups)] {
		if g != nil && slices.Equal(g.key, c.key) {
			return int32(id)
		}
	}
	if id, ok := c.byKey[string(c.bytesOf(c.key))]; ok {
		return id
	}
	g := &group{}
	if last := len(c.spare) - 1; last >= 0 {
		g, c.spare[last] = c.spare[last], nil
		c.spare = c.spare[:last]
	}
	g.key = append(g.key[:0], c.key...)
	id := int32(len(c.groups))
	if k := len(c.free); k > 0 {
		id = c.free[k-1]
		c.free = c.free[:k-1]
		c.groups[id] = g
	} else {
		c.groups = append(c.groups, g)
		c.feasible, c.best = append(c.feasible, 0), append(c.best, 0)
		for k := range c.groupRules {
			c.static[k], c.host[k] = append(c.static[k], 0), append(c.host[k], 0)
		}
		for t := range c.topologies {
			c.domains[t] = append(c.domains[t], 0)
		}
	}
	c.describe(id, g)
	c.byKey[string(c.keyBuf)] = id
	return id
}

// describe lays out a group's structural key for the rules, in the order in which
// regroup writes it.
func (c *column) describe(id int32, g *group) {
	for t := range c.topologies {
		c.domains[t][id] = cluster.Domain(g.key[t])
	}
	for k := range c.groupRules {
		c.static[k][id] = g.key[len(c.topologies)+k]
		if c.private {
			c.host[k][id] = g.key[len(c.topologies)+len(c.groupRules)+k]
		}
	}
}

// bytesOf returns a structural key as bytes, valid until the next call.
func (x *groupIndex) bytesOf(key []int32) []byte {
	x.keyBuf = x.keyBuf[:0]
	for _, k := range key {
		x.keyBuf = binary.LittleEndian.AppendUint32(x.keyBuf, uint32(k))
	}
	return x.keyBuf
}

// remove takes node i out of its group, if it is in one; a group without nodes goes.
func (c *column) remove(i cluster.NodeIndex) {
	cl := &c.cells[i]
	if cl.group < 0 {
		return
	}
	g := c.groups[cl.group]
	if cl.ok {
		c.feasible[cl.group]--
	}
	last := len(g.nodes) - 1
	if int(cl.slot) != last { // the last node takes the slot
		moved := g.nodes[last]
		g.nodes[cl.slot] = moved
		g.tree.set(int(cl.slot), g.tree.at(last))
		c.cells[moved].slot = cl.slot
	}
	g.nodes = g.nodes[:last]
	g.tree.pop()
	c.best[cl.group] = g.tree.top()
	if last == 0 {
		delete(c.byKey, string(c.bytesOf(g.key)))
		c.groups[cl.group] = nil
		c.free = append(c.free, cl.group)
		if len(c.spare) < maxSpare {
			c.spare = append(c.spare, g)
		}
	}
	cl.group, cl.slot, cl.ok = -1, 0, false
}
