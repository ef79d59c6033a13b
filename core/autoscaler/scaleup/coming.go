package scaleup

import (
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// Coming is what a node group is waited for: nodes that were asked for and aren't usable.
type Coming struct {
	// Starting are the nodes that are registered and not usable yet, or wait for a CSI driver or devices, by index.
	Starting []*cluster.Node
	// Unregistered is how many are neither nodes yet nor given up.
	Unregistered int
	// Registered is how many nodes the group has, usable or not, without those whose instance is
	// gone.
	Registered int
}

// Nodes returns how many nodes are coming.
func (c *Coming) Nodes() int { return len(c.Starting) + c.Unregistered }

// Survey finds what is coming, by group, in O(groups + new nodes + nodes that aren't ready). Nodes are
// coming that make up the difference between a group's target and its nodes that are usable, on their way out, or
// late; but the instances that nobody waits for are not. A node that isn't ready and whose instance
// is gone doesn't count: the instance that replaces it is coming.
func Survey(s *cluster.State, conditions map[string]autoscaler.GroupCondition, readiness *autoscaler.Readiness, serverNow time.Time) map[string]*Coming {
	out := map[string]*Coming{}
	groups := s.Groups()
	for _, g := range groups {
		out[g.ID] = &Coming{Registered: s.GroupSize(g.ID)}
	}
	s.Unready(func(n *cluster.Node) {
		if c := out[n.Group]; c != nil && isLost(conditions, n) {
			c.Registered--
		}
	})
	promises := newPromises(s, conditions, readiness, serverNow)
	notLate(s, readiness, serverNow, func(n *cluster.Node) {
		c := out[n.Group]
		if c == nil || isLost(conditions, n) {
			return
		}
		if promises.starting(n) {
			c.Starting = append(c.Starting, n)
		}
	})
	for _, g := range groups {
		known := conditions[g.ID]
		out[g.ID].Expect(g, &known)
	}
	return out
}

// notLate calls f with the nodes of which some group's nodes aren't late yet, by index: only new ones
// may be starting.
func notLate(s *cluster.State, readiness *autoscaler.Readiness, serverNow time.Time, f func(*cluster.Node)) {
	s.CreatedSince(serverNow.Add(-longestStartup(s, readiness)), f)
}

// isLost reports whether the instance of a node is gone, by the condition of its group.
func isLost(conditions map[string]autoscaler.GroupCondition, n *cluster.Node) bool {
	return conditions[n.Group].Lost(n.NodeInfo)
}

// live returns how many nodes there are without those that are lost.
func live(s *cluster.State, conditions map[string]autoscaler.GroupCondition) int {
	nodes := s.Live()
	s.Unready(func(n *cluster.Node) {
		if isLost(conditions, n) {
			nodes--
		}
	})
	return nodes
}

// Expect sets how many nodes of a group are coming that aren't registered.
func (c *Coming) Expect(g *cluster.NodeGroup, known *autoscaler.GroupCondition) {
	c.Unregistered = max(g.Target-known.LongUnregistered-known.Deleting-c.Registered, 0)
}

// Launching returns how many nodes of all groups are coming.
func Launching(coming map[string]*Coming) (n int) {
	for _, c := range coming {
		n += c.Nodes()
	}
	return n
}
