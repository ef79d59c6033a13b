package engine

import (
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// The local answers of every node, for all classes with the same local rules.
//
// A column follows the journal: sync evaluates the nodes that changes since the last
// sync touched, each once, from the state as it now is. Whoever reads a column syncs
// it first. Then it holds:
//
//   - cells[i] is what the local rules say of node i, or has no group when there is no
//     such node;
//   - every node is in the group of its structural key (groups.go);
//   - a node's key in the tree of its group is its score and rank when the local rules
//     allow it, else 0.
//
// Cost of a sync: 150 to 450 ns for each distinct node touched, bound by cache misses.

// column holds the local answers of every node. It is shared by the classes whose
// local rules and kinds of group rules are the same, or private to one class.
type column struct {
	state      *cluster.State
	localRules []localRule
	// groupRules are those of one of the classes. Of them only what is the same for all
	// is used: StaticKey, and HostKey when the column is private.
	groupRules []groupRule
	topologies []*cluster.Topology // of all group rules, each once
	narrowed   *narrowing          // of the local rules
	// private columns serve one class: their structural key includes the
	// class's host keys, so that no node is exceptional.
	private  bool
	meetings uint64 // of the host topologies when a private column was made (private.go)
	seed     uint64 // of ranks
	options  Options

	cells []cell // by node index
	groupIndex
	tally *tally // nil until a class of the column is refused (tally.go)

	built   bool                // all nodes have been evaluated once
	cursor  cluster.Seq         // the changes before it are taken into account, once built
	pending []cluster.NodeIndex // touched by changes before the cursor that were rolled back since

	// Scratch memory of sync.
	seen   stamps // nodes evaluated
	object stamps // nodes whose object changed, or may have
}

// cell is the local answer for one node, in 16 bytes: with many columns of many
// nodes, fetching them is most of the work.
type cell struct {
	group       int32 // -1 when there is no such node
	slot        int32 // in the group
	objectScore int32 // of the rules that read only the object
	objectNo    bool  // one of those rejects the node
	ok          bool  // no local rule rejects the node
}

// podsAnswer is what the rules that read pods say of a node.
type podsAnswer struct {
	score    int32
	rejected bool
}

// changedPart is what of a node may have changed since it was evaluated last.
type changedPart bool

const (
	podsChanged   changedPart = false // only the rules that read pods
	objectChanged changedPart = true  // all rules, and the structural key
)

// rank breaks ties between equally good nodes: the higher one wins. It is a bijection
// of 40 bits of the hash of the node's name, so that it is unique where those are; the
// seed mixes the local signature in, so that classes of other shapes prefer other nodes.
func (c *column) rank(n *cluster.Node) uint64 { return rankOf(n, c.seed) }

func rankOf(n *cluster.Node, seed uint64) uint64 {
	const mask = 1<<rankBits - 1
	x := (n.Hash ^ seed) & mask
	x = x * 0x9E3779B97F4A7C15 & mask
	x ^= x >> 21
	return x * 0xBF58476D1CE4E5B9 & mask
}

// sync brings the column up to the head of the journal, evaluating each
// touched node once from the state as it is. When the journal doesn't reach back far
// enough, or more has happened than evaluating all nodes costs, it does that.
func (c *column) sync() {
	head := c.state.Head()
	changes, ok := c.state.Since(c.cursor)
	if !c.built || !ok || c.options.Rebuilt || len(changes)+len(c.pending) > 16*c.state.Len()+1024 {
		c.rebuild()
		return
	}
	if len(changes) == 0 && len(c.pending) == 0 {
		return
	}
	c.seen.next(c.state.Len())
	c.object.next(c.state.Len())
	for i := range changes {
		switch changes[i].Op {
		case cluster.NodeAdded, cluster.NodeUpdated, cluster.NodeRemoved, cluster.NodeTouched:
			c.object.set(changes[i].Node)
		}
	}
	for _, i := range c.pending {
		if int(i) >= c.state.Len() {
			if int(i) < len(c.cells) {
				c.remove(i) // the node was added in what was rolled back
				c.recount(i)
			}
			continue
		}
		c.object.set(i) // what was rolled back may have changed it
		if c.seen.set(i) {
			c.evaluate(i, objectChanged)
		}
	}
	c.pending = c.pending[:0]
	for i := range changes {
		if n := changes[i].Node; n != cluster.NoNode && c.seen.set(n) {
			c.evaluate(n, changedPart(c.object.has(n)))
		}
	}
	c.cursor = head
}

// rebuild evaluates all nodes from nothing.
func (c *column) rebuild() {
	n := c.state.Len()
	c.cells = slices.Grow(c.cells[:0], n)[:n]
	for i := range c.cells {
		c.cells[i] = cell{group: -1}
	}
	c.groupIndex.reset(len(c.topologies), len(c.groupRules))
	c.tally = nil
	c.pending = c.pending[:0]
	if c.options.Workers > 1 {
		c.enterAll(c.askAll())
	} else {
		for i := range n {
			if node := c.state.Node(cluster.NodeIndex(i)); node != nil {
				c.enter(node, c.ask(node, &c.cells[i], objectChanged))
			}
		}
	}
	for id, g := range c.groups {
		g.tree.fill()
		c.best[id] = g.tree.top()
	}
	c.cursor = c.state.Head()
	c.built = true
}

// rolledBack moves the cursor back to a position if it is beyond, and remembers which
// nodes the column knows by changes that were taken back.
func (c *column) rolledBack(to cluster.Seq, undone []cluster.Change) {
	if !c.built || c.cursor <= to {
		return
	}
	for i := range undone[:c.cursor-to] {
		if n := undone[i].Node; n != cluster.NoNode {
			c.pending = append(c.pending, n)
		}
	}
	c.cursor = to
}

// evaluate brings one node up to date.
func (c *column) evaluate(i cluster.NodeIndex, changed changedPart) {
	for len(c.cells) <= int(i) {
		c.cells = append(c.cells, cell{group: -1})
	}
	c.recount(i)
	n := c.state.Node(i)
	if n == nil {
		c.remove(i)
		return
	}
	c.put(n, c.ask(n, &c.cells[i], changed), changed)
}

// ask evaluates the local rules on a node: those that read only its object into its
// cell, if the object changed; those that read pods unless the object was rejected. It
// writes nothing but the cell, so that several goroutines may ask about different nodes.
func (c *column) ask(n *cluster.Node, cl *cell, changed changedPart) (a podsAnswer) {
	if changed == objectChanged {
		cl.objectScore, cl.objectNo = c.run(n, framework.ReadsObject)
	}
	if !cl.objectNo {
		a.score, a.rejected = c.run(n, framework.ReadsPods)
	}
	return a
}

// run evaluates the rules that read only the object, or those that read pods. The score
// is weighted; it is 0 when a rule rejects the node.
func (c *column) run(n *cluster.Node, reads framework.Aspects) (score int32, rejected bool) {
	for k := range c.localRules {
		r := &c.localRules[k]
		if (r.reads&framework.ReadsPods != 0) != (reads == framework.ReadsPods) {
			continue
		}
		code, s := r.EvalNode(n)
		if code != framework.OK {
			return 0, true
		}
		score += int32(s * r.weight)
	}
	return score, false
}

// put writes a node's answer to its cell and to the index of its group. The group
// depends on the node's object only, unless the column is private: then on host keys,
// which pods change.
func (c *column) put(n *cluster.Node, a podsAnswer, changed changedPart) {
	cl := &c.cells[n.Index]
	ok := !cl.objectNo && !a.rejected
	var key scoreKey
	if ok {
		key = newKey(cl.objectScore+a.score, c.rank(n))
	}
	if changed == objectChanged || c.private || cl.group < 0 {
		c.regroup(n, cl)
	}
	if ok != cl.ok {
		cl.ok = ok
		if ok {
			c.feasible[cl.group]++
		} else {
			c.feasible[cl.group]--
		}
	}
	g := c.groups[cl.group]
	g.tree.set(int(cl.slot), key)
	c.best[cl.group] = g.tree.top()
}

// enter is put for a node of a column that is made from nothing. The trees and what is best in
// them are for the caller to fill: found once, they cost less than kept node by node.
func (c *column) enter(n *cluster.Node, a podsAnswer) {
	cl := &c.cells[n.Index]
	c.readKey(n)
	g := c.join(n, cl)
	var key scoreKey
	if cl.ok = !cl.objectNo && !a.rejected; cl.ok {
		key = newKey(cl.objectScore+a.score, c.rank(n))
		c.feasible[cl.group]++
	}
	g.tree.push(key)
}

// keyOf returns the key of a node, 0 when there is no such node or a local rule rejects
// it.
func (c *column) keyOf(i cluster.NodeIndex) scoreKey {
	if int(i) >= len(c.cells) || !c.cells[i].ok {
		return 0
	}
	cl := &c.cells[i]
	return c.groups[cl.group].tree.at(int(cl.slot))
}
