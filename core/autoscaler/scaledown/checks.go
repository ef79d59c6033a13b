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
	answers []checked // by node index
	// order has all nodes by name; it is rebuilt when nodes were added or removed.
	order   []cluster.NodeIndex
	ordered bool
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
			c.ordered = false
			c.forget(x.Node)
		case x.Node != cluster.NoNode:
			c.forget(x.Node)
		}
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
	if c.ordered {
		return
	}
	c.order, c.ordered = c.order[:0], true
	world.Nodes(func(n *cluster.Node) { c.order = append(c.order, n.Index) })
	slices.SortFunc(c.order, func(a, b cluster.NodeIndex) int { return strings.Compare(world.Node(a).Name, world.Node(b).Name) })
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
