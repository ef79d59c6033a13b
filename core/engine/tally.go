package engine

// Why the local rules of a column reject nodes, counted.
//
// A class that fits nowhere asks for this at each attempt, and a tally answers for what has
// changed since the last: sync only lists the nodes that it evaluates, and counted looks at
// each of these once more, for the first rule that rejects it in the order of the profile.
// A column has a tally from the first time on that a class of it is refused.
//
// After counted it holds: a node's reason is that of the first local rule that rejects it; a
// node that they take has none.

import (
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// tally counts the reasons of one column.
type tally struct {
	reasonCounts
	stale []cluster.NodeIndex // evaluated since, in no order and maybe twice
}

// counted returns the column's tally, up to date. The column must be.
func (c *column) counted() *tally {
	t := c.tally
	if t == nil {
		t = &tally{reasonCounts: newReasonCounts()}
		c.tally = t
		for i := range c.state.Len() {
			t.look(c, cluster.NodeIndex(i))
		}
		return t
	}
	for _, i := range t.stale {
		t.look(c, i)
	}
	t.stale = t.stale[:0]
	return t
}

// uncount says that a node was evaluated, or is gone. A tally that lags behind by more than all
// nodes is dropped: counting anew costs less.
func (c *column) uncount(i cluster.NodeIndex) {
	switch t := c.tally; {
	case t == nil:
	case len(t.stale) > c.state.Len():
		c.tally = nil
	default:
		t.stale = append(t.stale, i)
	}
}

// precedes tells whether all nodes that local rules reject are asked of these before any group
// rule of the class that may reject nodes. A plugin's local rule comes before its group rule.
func (t *tally) precedes(c *Class) bool {
	for k := range c.groupRules {
		r := &c.groupRules[k]
		if r.neverFilters {
			continue
		}
		return !slices.ContainsFunc(t.reasons, func(x countedReason) bool { return x.nodes > 0 && x.plugin > r.plugin })
	}
	return true
}

// look takes note of why a node is rejected now.
func (t *tally) look(c *column, i cluster.NodeIndex) {
	if int(i) < c.state.Len() && int(i) < len(c.cells) && !c.cells[i].ok {
		if n := c.state.Node(i); n != nil {
			why, plugin := c.why(n)
			t.set(i, why, plugin)
			return
		}
	}
	t.clear(i)
}

// why returns the reason of the first local rule that rejects a node, in the order of the
// profile, after those that leave nodes out before any other (framework.Narrower), and the
// rule's plugin, noPlugin of those. There must be one.
func (c *column) why(n *cluster.Node) (*framework.Reason, int) {
	for k := range c.localRules {
		if x, ok := c.localRules[k].LocalRule.(framework.Narrower); ok && x.Narrows(n.NodeInfo) {
			return c.localRules[k].Explain(n), noPlugin
		}
	}
	for k := range c.localRules {
		if code, _ := c.localRules[k].EvalNode(n); code != framework.OK {
			return c.localRules[k].Explain(n), c.localRules[k].plugin
		}
	}
	panic("engine: a node that the local rules reject is rejected by none")
}
