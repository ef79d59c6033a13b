package scaledown

import (
	"slices"
	"strings"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// This file caches the answer of Check for each node from one pass to the next. Invariant: a cached
// answer equals a fresh one. Candidates and homes have none, since Check isn't called for them.
// Check is called again when the node was touched, when the groups or the rules have changed, and
// when its answer has expired.

// checks are the cached answers of Check for all nodes.
type checks struct {
	answers []checked               // by node index
	order   []cluster.NodeIndex     // all nodes by name, as of the last pass
	moved   []cluster.NodeIndex     // where nodes have come or gone since
	spare   []cluster.NodeIndex     // memory for the next order
	rules   autoscaler.RemovalRules // by which Check has answered
	startup time.Duration           // Readiness.StartupTime, likewise
}

// checked is why a node isn't a candidate, or how much of it is used.
type checked struct {
	known       bool
	kept        *autoscaler.Kept // nil when it may be one; never changed
	utilization float64
	leaves      bool      // Berth has it on its way out
	until       time.Time // after this time Check may say something else; zero for never
}

// follow forgets what Check has said of nodes that changes concern.
func (c *checks) follow(changes []cluster.Change) {
	for i := range changes {
		switch x := &changes[i]; {
		case x.Op == cluster.GroupSet && !sameForCheck(x.OldGroup, x.Group):
			clear(c.answers)
		case x.Op == cluster.NodeAdded || x.Op == cluster.NodeRemoved:
			c.noteMoved(x.Node)
			c.forget(x.Node)
		case x.Node != cluster.NoNode:
			c.forget(x.Node)
		}
	}
}

// noteMoved records that a node has come or gone. After as many as there were, as when no passes are
// made for long, the next order is made anew.
func (c *checks) noteMoved(i cluster.NodeIndex) {
	switch {
	case c.order == nil:
	case len(c.moved) >= len(c.order):
		c.order, c.moved = nil, nil
	default:
		c.moved = append(c.moved, i)
	}
}

// sameForCheck reports whether Check says the same of the nodes of a group before and after a
// change of it. Either may be nil.
func sameForCheck(a, b *cluster.NodeGroup) bool {
	return a != nil && b != nil && a.Options == b.Options && a.Template == b.Template && a.KeepNodes == b.KeepNodes
}

func (c *checks) forget(i cluster.NodeIndex) {
	if int(i) < len(c.answers) {
		c.answers[i] = checked{}
	}
}

// begin makes ready for a pass over a world, in O(1) unless nodes have come or gone or the rules
// are others.
func (c *checks) begin(world *cluster.State, rules *autoscaler.RemovalRules, readiness *autoscaler.Readiness) {
	if c.rules != *rules || c.startup != readiness.StartupTime {
		c.rules, c.startup = *rules, readiness.StartupTime
		clear(c.answers)
	}
	if more := world.Len() - len(c.answers); more > 0 {
		c.answers = append(c.answers, make([]checked, more)...)
	}
	if c.order == nil {
		world.Nodes(func(n *cluster.Node) { c.moved = append(c.moved, n.Index) })
	}
	if len(c.moved) > 0 {
		c.reorder(world)
	}
}

// reorder takes the nodes that have gone out of the order and inserts those that have come: one
// walk without looking at any node, and for each that has come a sort and a binary search.
func (c *checks) reorder(world *cluster.State) {
	moved := make([]bool, len(c.answers))
	var come []cluster.NodeIndex
	for _, i := range c.moved {
		if !moved[i] && world.Node(i) != nil {
			come = append(come, i)
		}
		moved[i] = true
	}
	stay := slices.DeleteFunc(c.order, func(i cluster.NodeIndex) bool { return moved[i] })
	slices.SortFunc(come, func(a, b cluster.NodeIndex) int { return strings.Compare(world.Node(a).Name, world.Node(b).Name) })
	order := slices.Grow(c.spare[:0], len(stay)+len(come)+1) // never nil
	c.spare = c.order
	for _, i := range come {
		at, _ := slices.BinarySearchFunc(stay, world.Node(i).Name, func(x cluster.NodeIndex, name string) int { return strings.Compare(world.Node(x).Name, name) })
		order, stay = append(append(order, stay[:at]...), i), stay[at:]
	}
	c.order, c.moved = append(order, stay...), c.moved[:0]
}

// checked returns the answer of Check for a node that is neither a candidate nor a home, in O(1)
// if it is cached.
func (p *pass) checked(n *cluster.Node) *checked {
	x := &p.checks.answers[n.Index]
	if !x.known || p.rebuilt || outlived(x.until, p.check.Now) {
		p.check.Until = time.Time{}
		*x = checked{known: true, kept: p.check.Ineligible(n), leaves: leavesByBerth(n)}
		x.utilization, _ = p.check.Utilization(n)
		x.until = p.check.Until
	}
	p.changesAfter(x.until)
	return x
}

// leavesByBerth reports whether Berth has a node on its way out.
func leavesByBerth(n *cluster.Node) bool {
	_, ours := n.Object.Annotations[autoscaler.RemovalNote]
	return ours && n.HasTaint(autoscaler.ToBeDeletedTaint)
}

// outlived reports whether what holds until a time, zero for ever, may hold no more.
func outlived(until, now time.Time) bool { return !until.IsZero() && now.After(until) }

// earlier returns the earlier of two times until which something holds; zero means for ever.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
