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
	short map[string]*shortfalls // by message, of those that are about a quantity
	stale []cluster.NodeIndex    // evaluated since, in no order and maybe twice
}

// counted returns the column's tally, up to date. The column must be.
func (c *column) counted() *tally {
	t := c.tally
	if t == nil {
		t = &tally{reasonCounts: newReasonCounts(), short: map[string]*shortfalls{}}
		c.tally = t
		for i := range c.state.Len() {
			t.recordRejection(c, cluster.NodeIndex(i))
		}
		return t
	}
	for _, i := range t.stale {
		t.recordRejection(c, i)
	}
	t.stale = t.stale[:0]
	return t
}

// recount marks a node to be counted again by the next call of counted: it was evaluated, or is gone. A
// node that was rejected before any rule was asked that reads pods still is while its object is
// the same. A tally that lags behind by more than all nodes is dropped: counting anew costs less.
func (c *column) recount(i cluster.NodeIndex, object bool) {
	switch t := c.tally; {
	case t == nil:
	case !object && t.rejectedBefore(i, c.firstReader):
	case len(t.stale) > c.state.Len():
		c.tally = nil
	default:
		t.stale = append(t.stale, i)
	}
}

// rejectedBefore reports whether the local rule that rejects a node is of an earlier plugin, or
// none was asked.
func (t *tally) rejectedBefore(i cluster.NodeIndex, plugin int) bool {
	number := t.number(i)
	return number != 0 && t.reasons[number].plugin < plugin
}

// precedes reports whether all nodes that local rules reject are asked of these before any group
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

// recordRejection records why a node is rejected now.
func (t *tally) recordRejection(c *column, i cluster.NodeIndex) {
	t.clearShortfalls(i)
	if int(i) < c.state.Len() && int(i) < len(c.cells) && !c.cells[i].ok {
		if n := c.state.Node(i); n != nil {
			why, plugin := c.why(n)
			t.set(i, why, plugin)
			t.setShortfalls(i, why)
			return
		}
	}
	t.clear(i)
}

// setShortfalls records the quantities in the reason that a node has got.
func (t *tally) setShortfalls(i cluster.NodeIndex, why *framework.Reason) {
	if !hasDeficits(why) {
		return
	}
	for k, m := range why.Messages {
		if t.short[m] == nil {
			t.short[m] = newShortfalls()
		}
		t.short[m].set(i, shortfall(why.Deficits[k]))
	}
}

// clearShortfalls takes the quantities away that belong to the reason that a node still has.
func (t *tally) clearShortfalls(i cluster.NodeIndex) {
	if had := t.reasons[t.number(i)].why; had != nil && hasDeficits(had) {
		for _, m := range had.Messages {
			t.short[m].set(i, noShortfall)
		}
	}
}

// nearest returns what a message is about on the node that comes nearest, the first of equal
// ones, leaving out some nodes; NoNode when there is none.
func (t *tally) nearest(c *column, message string, except []cluster.NodeIndex) (cluster.NodeIndex, framework.Deficit) {
	s := t.short[message]
	if s == nil {
		return cluster.NoNode, framework.Deficit{}
	}
	var aside []int64
	for _, i := range except { // these are set aside, and come back
		x := int64(noShortfall)
		if int(i) < len(s.amounts) {
			x = s.amounts[i]
			s.set(i, noShortfall)
		}
		aside = append(aside, x)
	}
	at, _ := s.nearest()
	for k, i := range except {
		if aside[k] != noShortfall {
			s.set(i, aside[k])
		}
	}
	if at == cluster.NoNode {
		return cluster.NoNode, framework.Deficit{}
	}
	if s.told.node != at {
		why, _ := c.why(c.state.Node(at))
		s.told.node, s.told.deficit = at, why.Deficits[slices.Index(why.Messages, message)]
	}
	return at, s.told.deficit
}

// why returns the reason of the first local rule that rejects a node, in the order of the
// profile, after those that leave nodes out before any is asked (narrowing), and the
// rule's plugin, noPlugin of those. There must be one.
func (c *column) why(n *cluster.Node) (*framework.Reason, int) {
	if c.narrowed.leavesOut(n.NodeInfo) {
		return c.narrowed.reason(), noPlugin
	}
	for k := range c.localRules {
		if code, _ := c.localRules[k].EvalNode(n); code != framework.OK {
			return c.localRules[k].Explain(n), c.localRules[k].plugin
		}
	}
	panic("engine: a node that the local rules reject is rejected by none")
}
