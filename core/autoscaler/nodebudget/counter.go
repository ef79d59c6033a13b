package nodebudget

import (
	"fmt"
	"time"
)

// This file counts nodes against budgets. What must hold: after each Remove that refuses
// nothing, no more nodes of a group are on their way out than the smallest limit of the active
// budgets that are for the reason. Nodes on their way out count whatever they go for, and so do
// nodes that aren't ready, as in Karpenter: the group is short of them already.

// Counter counts nodes down over one plan. All nodes have to be added before any is taken.
type Counter struct {
	active []Budget
	groups map[string]*count
}

// count is of the nodes of one group.
type count struct{ nodes, gone int }

// NewCounter returns a counter of the budgets that are active at a time; nil when none is.
func NewCounter(budgets []Budget, now time.Time) *Counter {
	var c *Counter
	for _, b := range budgets {
		if !b.Active(now) {
			continue
		}
		if c == nil {
			c = &Counter{groups: map[string]*count{}}
		}
		c.active = append(c.active, b)
	}
	return c
}

// Availability is whether a group has a node still.
type Availability bool

// The availabilities.
const (
	Available   Availability = false
	Unavailable Availability = true // it is on its way out, or isn't ready
)

func (c *Counter) group(id string) *count {
	g := c.groups[id]
	if g == nil {
		g = &count{}
		c.groups[id] = g
	}
	return g
}

// Add counts a node that there is.
func (c *Counter) Add(group string, is Availability) {
	g := c.group(group)
	g.nodes++
	if is == Unavailable {
		g.gone++
	}
}

// Room returns how many more nodes of a group that are there may go for a reason.
func (c *Counter) Room(group string, r Reason) int {
	g := c.group(group)
	room := g.nodes - g.gone
	for i := range c.active {
		if b := &c.active[i]; b.concerns(r) {
			room = min(room, b.Limit(g.nodes)-g.gone)
		}
	}
	return max(room, 0)
}

// Remove counts a node as gone that was added as it is, or returns why a budget keeps it, in words;
// then it counts as before.
func (c *Counter) Remove(group string, r Reason, is Availability) (why string) {
	g := c.group(group)
	others := g.gone
	if is == Unavailable {
		others--
	}
	for i := range c.active {
		b := &c.active[i]
		if limit := b.Limit(g.nodes); b.concerns(r) && others >= limit {
			return fmt.Sprintf("%d of %d nodes of group %s are being removed or not ready, and the budget allows %d (--node-disruption-budget=%q)", others, g.nodes, group, limit, b)
		}
	}
	g.gone = others + 1
	return ""
}
