package engine

import (
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Nodes are evaluated a block at a time, step by step: each step goes through the block before
// the next begins. With many columns of many nodes nothing of a node is in the processor's
// cache when its turn comes; a step that does little with each node has the processor fetch the
// memory of several side by side, where all steps of one node after the other wait for each.

// blockSize is how many nodes are evaluated together: what a step has fetched of them is still
// there in the next.
const blockSize = 16

// block are nodes that are evaluated together. Its lists have an entry for each.
type block struct {
	n        int             // how many there are
	objects  int             // of how many the object may have changed
	nodes    []*cluster.Node // in own, or of the state's
	own      [blockSize]*cluster.Node
	object   [blockSize]bool     // whether its object may have changed; otherwise only its pods have
	ranks    [blockSize]uint64   // of the nodes
	scores   [blockSize]int32    // of the rules, weighted
	rejected [blockSize]bool     // by a rule
	failed   [blockSize]bool     // by a rule with an error; these are rejected, too
	keys     [blockSize]scoreKey // what the rules say: 0 when one rejects it
	groups   [blockSize]int32    // of a column that is being filled
}

// next empties the block.
func (b *block) next() { b.n, b.objects, b.nodes = 0, 0, b.own[:0] }

// add adds a node, for which there must be room.
func (b *block) add(n *cluster.Node, object bool) {
	b.nodes, b.object[b.n] = append(b.nodes, n), object
	if object {
		b.objects++
	}
	b.n++
}

// all returns the nodes.
func (b *block) all() []*cluster.Node { return b.nodes }

// copyTo copies the block's keys into a list by node.
func (b *block) copyTo(keys []scoreKey) {
	for j, n := range b.all() {
		keys[n.Index] = b.keys[j]
	}
}

// scratch is memory that the columns of an engine use in turn: little of it is anybody's for long,
// and so it is in the processor's cache.
type scratch struct {
	seen    stamps              // nodes evaluated
	object  stamps              // nodes whose object changed, or may have
	touched []cluster.NodeIndex // nodes to be evaluated
	keys    []scoreKey          // by node
	sizes   []int32             // by group
	lists   []placedNodes       // by group
	parts   [][blockSize]int32  // see groupFinder
	lastOf  []int32             // see groupFinder.last
	block   block
}

// keysOf returns room for the keys of n nodes, which hold anything, until the next call.
func (s *scratch) keysOf(n int) []scoreKey {
	s.keys = slices.Grow(s.keys[:0], n)[:n]
	return s.keys
}

// fill makes the block that of the nodes from one index to another, all of whose rules are to be
// asked.
func (c *column) fill(b *block, from, to int) {
	b.next()
	if nodes := c.state.Slots(from, to); !slices.Contains(nodes, nil) {
		b.nodes, b.n, b.objects = nodes, len(nodes), len(nodes)
		for j := range nodes {
			b.object[j] = true
		}
		return
	}
	for i := from; i < to; i++ {
		if n := c.state.Node(cluster.NodeIndex(i)); n != nil {
			b.add(n, true)
		}
	}
}

// evaluate brings nodes up to date, each of which is in the list once. Those whose object may have
// changed are in c.scratch.object.
func (c *column) evaluate(list []cluster.NodeIndex) {
	b := &c.scratch.block
	for len(list) > 0 {
		b.next()
		for _, i := range list[:min(blockSize, len(list))] {
			for len(c.cells) <= int(i) {
				c.cells = append(c.cells, cell{group: -1})
			}
			c.recount(i, c.scratch.object.has(i))
			if n := c.state.Node(i); n != nil {
				b.add(n, c.scratch.object.has(i))
			} else {
				c.forgetNode(i)
			}
		}
		c.ask(b)
		c.put(b)
		list = list[min(blockSize, len(list)):]
	}
}

// ask finds out the keys of the nodes of a block. It evaluates the local rules that read only a
// node's object into its cell, if the object changed, and those that read pods unless the object was
// rejected; it writes nothing else but the block, so that several goroutines may ask about different
// nodes. A column that has a source takes the scores from there.
func (c *column) ask(b *block) {
	if c.source != nil {
		for j, n := range b.all() {
			key := c.source.keyOf(n.Index)
			if key != 0 {
				key = newKey(int32(key.score()), c.rank(n))
			}
			b.keys[j] = key
		}
		return
	}
	for j, n := range b.all() {
		b.ranks[j] = c.rank(n)
	}
	c.askOfObjects(b)
	for k := range c.localRules {
		if r := &c.localRules[k]; r.reads&framework.ReadsPods != 0 {
			b.evaluate(r, false)
		}
	}
	for j, rejected := range b.rejected[:b.n] {
		var key scoreKey
		if !rejected {
			key = newKey(b.scores[j], b.ranks[j])
		}
		b.keys[j] = key
	}
}

// askOfObjects finds out what the local rules say that read only a node's object, or looks it up where
// the object is the same.
func (c *column) askOfObjects(b *block) {
	for j, n := range b.all() {
		b.scores[j], b.rejected[j], b.failed[j] = 0, false, false
		if !b.object[j] {
			cl := &c.cells[n.Index]
			b.scores[j], b.rejected[j] = cl.objectScore, cl.objectNo
		}
	}
	if b.objects == 0 {
		return
	}
	for k := range c.localRules {
		if r := &c.localRules[k]; r.reads&framework.ReadsPods == 0 {
			b.evaluate(r, b.objects < b.n)
		}
	}
	for j, n := range b.all() {
		if b.object[j] {
			cl := &c.cells[n.Index]
			cl.objectScore, cl.objectNo, cl.objectFails = b.scores[j], b.rejected[j], b.failed[j]
		}
	}
}

// evaluate adds what a rule says about each node to its score, unless a rule rejects it; of all nodes or,
// with changed, of those whose object may have changed.
func (b *block) evaluate(r *localRule, changed bool) {
	if r.many != nil && !changed {
		r.many.EvalNodes(b.all(), int32(r.weight), b.scores[:b.n], b.rejected[:b.n])
		return
	}
	rule, weight := r.LocalRule, r.weight
	for j, n := range b.all() {
		if b.rejected[j] || changed && !b.object[j] {
			continue
		}
		code, s := rule.EvalNode(n)
		b.scores[j] += int32(s * weight)
		b.rejected[j], b.failed[j] = code != framework.OK, code == framework.Error
	}
}

// put writes the answers for a block to the nodes' cells and to the indexes of their groups. A
// node's group depends on its object only, unless the column is private: then on host keys, which
// pods change.
func (c *column) put(b *block) {
	for j, n := range b.all() {
		if cl := &c.cells[n.Index]; b.object[j] || c.private || cl.group < 0 {
			c.regroup(n, cl)
		}
	}
	for j, n := range b.all() {
		cl := &c.cells[n.Index]
		c.countFailing(cl)
		if ok := b.keys[j] != 0; ok != cl.ok {
			cl.ok = ok
			if ok {
				c.feasible[cl.group]++
			} else {
				c.feasible[cl.group]--
			}
		}
		c.groups[cl.group].tree.write(int(cl.slot), b.keys[j])
	}
	for _, n := range b.all() {
		cl := &c.cells[n.Index]
		t := &c.groups[cl.group].tree
		t.lift(int(cl.slot))
		c.best[cl.group] = t.top()
	}
}
