package scaleup

import (
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// Coming is what a node group is waited for: nodes that were asked for and aren't usable.
type Coming struct {
	// Starting are the nodes that are registered and not usable yet, by index.
	Starting []*cluster.Node
	// Unregistered is how many are neither nodes yet nor given up.
	Unregistered int
}

// Nodes returns how many nodes are coming.
func (c *Coming) Nodes() int { return len(c.Starting) + c.Unregistered }

// Survey finds what is coming, by group, in O(nodes). Nodes are coming that make up the
// difference between a group's target and its nodes that are usable, on their way out, or
// late; but the instances that nobody waits for are not.
func Survey(s *cluster.State, conditions map[string]autoscaler.GroupCondition, readiness *autoscaler.Readiness, serverNow time.Time) map[string]*Coming {
	out := map[string]*Coming{}
	groups := s.Groups()
	registered := map[string]int{}
	s.Nodes(func(n *cluster.Node) {
		if n.Group == "" {
			return
		}
		registered[n.Group]++
		g := s.Group(n.Group)
		if g == nil || !readiness.Starting(n.NodeInfo, g, serverNow) {
			return
		}
		c := out[n.Group]
		if c == nil {
			c = &Coming{}
			out[n.Group] = c
		}
		c.Starting = append(c.Starting, n)
	})
	for _, g := range groups {
		c := out[g.ID]
		if c == nil {
			c = &Coming{}
			out[g.ID] = c
		}
		known := conditions[g.ID]
		c.Unregistered = max(g.Target-known.LongUnregistered-known.Deleting-registered[g.ID], 0)
	}
	return out
}

// Launching returns how many nodes of all groups are coming.
func Launching(coming map[string]*Coming) (n int) {
	for _, c := range coming {
		n += c.Nodes()
	}
	return n
}
