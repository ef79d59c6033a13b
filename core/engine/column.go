package engine

import (
	"slices"

	"github.com/berthproject/berth/core/cluster"
)

// The local answers of every node, for all classes with the same local rules.
//
// A column follows the journal: sync evaluates the nodes that changes since the last
// sync touched, each once, from the state as it now is. Whoever reads a column syncs
// it first. Then it holds:
//
//   - cells[i] is what the local rules say about node i, or has no group when there is no
//     such node;
//   - every node is in the group of its structural key (groups.go);
//   - a node's key in the tree of its group is its score and rank when the local rules
//     allow it, 0 otherwise.
//
// Cost of a sync: 100 to 200 ns for each distinct node touched, bound by cache misses (block.go),
// and some 60 where another column has evaluated it (column.source).

// column holds the local answers of every node. It is shared by the classes whose local signature
// and kinds of group rules are the same, or private to one class. Of columns with the same local
// rules the first one evaluates the nodes for all others (source).
type column struct {
	state      *cluster.State
	localRules []localRule
	// groupRules are those of one of the classes. Of them only what is the same for all
	// is used: StaticKey, and HostKey when the column is private.
	groupRules []groupRule
	topologies []*cluster.Topology // of all group rules, each once
	narrowed   *narrowing          // of the local rules
	// firstReader is the Class.firstReader of one of the classes: no later than the first
	// plugin with a local rule that reads pods.
	firstReader int
	// source is another column with the same local rules, which has the nodes' scores: they are
	// evaluated there, once for all columns that take them from it. nil when this one evaluates them.
	source *column
	// private columns serve one class: their structural key includes the
	// class's host keys, so that no node is exceptional.
	private  bool
	meetings uint64 // of the host topologies when a private column was made (private.go)
	seed     uint64 // of ranks
	options  Options

	cells []cell // by node index
	groupIndex
	failing int    // on how many nodes a rule ends attempts with an error (failing.go)
	tally   *tally // nil until a class of the column is refused (tally.go)

	used    uint64              // Engine.uses when it was used last
	built   bool                // all nodes have been evaluated once
	cursor  cluster.Seq         // the changes before it are taken into account, once built
	pending []cluster.NodeIndex // touched by changes before the cursor that were rolled back since

	scratch *scratch // the engine's
}

// cell is the local answer for one node, in 16 bytes: with many columns of many
// nodes, fetching them is most of the work.
type cell struct {
	group       int32 // -1 when there is no such node
	slot        int32 // in the group
	objectScore int32 // of the rules that read only the object
	objectNo    bool  // one of those rejects the node
	objectFails bool  // one of those ends attempts with an error
	failing     bool  // the same, as far as column.failing has it
	ok          bool  // no local rule rejects the node
}

// evaluator returns the column that evaluates the nodes for this one.
func (c *column) evaluator() *column {
	if c.source != nil {
		return c.source
	}
	return c
}

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
	if c.source != nil {
		c.source.sync()
	}
	head := c.state.Head()
	changes, ok := c.state.Since(c.cursor)
	if !c.built || !ok || c.options.Rebuilt || len(changes)+len(c.pending) > 16*c.state.Len()+1024 {
		c.rebuild()
		return
	}
	if len(changes) == 0 && len(c.pending) == 0 {
		return
	}
	seen, object, touched := &c.scratch.seen, &c.scratch.object, c.scratch.touched[:0]
	seen.next(c.state.Len())
	object.next(c.state.Len())
	for i := range changes {
		switch changes[i].Op {
		case cluster.NodeAdded, cluster.NodeUpdated, cluster.NodeRemoved, cluster.NodeTouched:
			object.set(changes[i].Node)
		}
	}
	for _, i := range c.pending {
		if int(i) >= c.state.Len() {
			if int(i) < len(c.cells) {
				c.forgetNode(i) // the node was added in what was rolled back
				c.recount(i, true)
			}
			continue
		}
		object.set(i) // what was rolled back may have changed it
		if seen.set(i) {
			touched = append(touched, i)
		}
	}
	c.pending = c.pending[:0]
	for i := range changes {
		if n := changes[i].Node; n != cluster.NoNode && seen.set(n) {
			touched = append(touched, n)
		}
	}
	c.evaluate(touched)
	c.scratch.touched = touched
	c.cursor = head
}

// rebuild evaluates all nodes from nothing.
func (c *column) rebuild() {
	n := c.state.Len()
	c.cells = slices.Grow(c.cells[:0], n)[:n]
	c.groupIndex.reset(len(c.topologies), len(c.groupRules))
	c.tally = nil
	c.pending, c.failing = c.pending[:0], 0
	c.enterAll()
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

// keyOf returns the key of a node, 0 when there is no such node or a local rule rejects
// it.
func (c *column) keyOf(i cluster.NodeIndex) scoreKey {
	if int(i) >= len(c.cells) || !c.cells[i].ok {
		return 0
	}
	cl := &c.cells[i]
	return c.groups[cl.group].tree.at(int(cl.slot))
}
