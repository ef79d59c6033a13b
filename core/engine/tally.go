package engine

// Why the local rules of a column reject nodes, counted.
//
// A class that fits nowhere asks for this at each attempt, and a tally answers for what has
// changed since the last: sync only lists the nodes that it evaluates, and counted looks at
// each of these once more, for the first rule that rejects it in the order of the profile.
// A column has a tally from the first time on that a class of it is refused.
//
// After counted it holds:
//
//   - of[i] is the number of the reason for which the local rules reject node i; 0 when they
//     take it, or there is no such node;
//   - a reason's nodes is how many entries of of have its number; one without nodes is
//     forgotten, and its number is free.

import (
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// tally counts the reasons of one column.
type tally struct {
	of      []int32          // by node index
	reasons []tallied        // by number; 0 stands for none
	byKey   map[string]int32 // number by tallied.key
	free    []int32          // free numbers
	stale   []cluster.NodeIndex

	keyBuf []byte // scratch: the key of the reason that is looked for
}

// tallied is one reason, without the quantities that it is about on each node.
type tallied struct {
	why    *framework.Reason
	plugin int // whose rule rejects, by position in the profile; noPlugin when it leaves nodes out before any other
	key    string
	nodes  int
}

// counted returns the column's tally, up to date. The column must be.
func (c *column) counted() *tally {
	t := c.tally
	if t == nil {
		t = &tally{reasons: make([]tallied, 1), byKey: map[string]int32{}}
		c.tally = t
		for i := range c.state.Len() {
			t.set(c, cluster.NodeIndex(i))
		}
		return t
	}
	for _, i := range t.stale {
		t.set(c, i)
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
		return !slices.ContainsFunc(t.reasons, func(x tallied) bool { return x.nodes > 0 && x.plugin > r.plugin })
	}
	return true
}

// set takes note of why a node is rejected now.
func (t *tally) set(c *column, i cluster.NodeIndex) {
	for len(t.of) <= int(i) {
		t.of = append(t.of, 0)
	}
	number := int32(0)
	if int(i) < c.state.Len() && int(i) < len(c.cells) && !c.cells[i].ok {
		if n := c.state.Node(i); n != nil {
			number = t.numberOf(c.why(n))
		}
	}
	if number != 0 {
		t.reasons[number].nodes++ // before another node's end of it may free it
	}
	if old := t.of[i]; old != 0 {
		r := &t.reasons[old]
		if r.nodes--; r.nodes == 0 {
			delete(t.byKey, r.key)
			*r = tallied{}
			t.free = append(t.free, old)
		}
	}
	t.of[i] = number
}

// numberOf returns the number of a reason, which is made if there is none.
func (t *tally) numberOf(why *framework.Reason, plugin int) int32 {
	t.keyBuf = append(t.keyBuf[:0], why.Plugin...)
	for _, m := range why.Messages {
		t.keyBuf = append(append(t.keyBuf, 0), m...)
	}
	if why.Final {
		t.keyBuf = append(t.keyBuf, 0)
	}
	if id, ok := t.byKey[string(t.keyBuf)]; ok {
		return id
	}
	id := int32(len(t.reasons))
	if k := len(t.free); k > 0 {
		id = t.free[k-1]
		t.free = t.free[:k-1]
	} else {
		t.reasons = append(t.reasons, tallied{})
	}
	t.reasons[id] = tallied{why: why, plugin: plugin, key: string(t.keyBuf)}
	t.byKey[t.reasons[id].key] = id
	return id
}

// why returns the reason of the first local rule that rejects a node, in the order of the
// profile, after those that leave nodes out before any other (framework.Narrower), and the
// rule's plugin as tallied has it. There must be one.
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
