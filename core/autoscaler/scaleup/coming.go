package scaleup

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// Coming counts, by group, the nodes that were asked for and aren't ready: the group's
// target, less the instances that nobody waits for, less the nodes that are ready, on
// their way out, or have not become ready within startup of their creation.
func Coming(s *cluster.State, conditions map[string]autoscaler.GroupCondition, now time.Time, startup time.Duration) map[string]int {
	out := map[string]int{}
	for _, g := range s.Groups() {
		out[g.ID] = g.Target - conditions[g.ID].LongUnregistered
	}
	s.Nodes(func(n *cluster.Node) {
		if n.Group == "" {
			return
		}
		late := now.Sub(n.Object.CreationTimestamp.Time) > startup
		if n.Ready() && !starting(n.NodeInfo) || late || n.HasTaint(autoscaler.ToBeDeletedTaint) {
			out[n.Group]--
		}
	})
	for id := range out {
		out[id] = max(out[id], 0)
	}
	return out
}

// Launching is Coming for all groups together.
func Launching(s *cluster.State, conditions map[string]autoscaler.GroupCondition, now time.Time, startup time.Duration) (n int) {
	for _, k := range Coming(s, conditions, now, startup) {
		n += k
	}
	return n
}

// starting tells whether taints say that a node doesn't take pods yet, though it may
// report that it is ready: the node controller takes them away a moment later.
func starting(n *cluster.NodeInfo) bool {
	return n.HasTaint(v1.TaintNodeNotReady) || n.HasTaint(v1.TaintNodeUnreachable)
}
