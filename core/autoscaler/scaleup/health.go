package scaleup

import (
	"fmt"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// Sick says why a cluster is too sick for its size to be changed, "" when it isn't: more
// nodes than OKTotalUnready, and more than MaxTotalUnready percent of all, aren't ready,
// those included that were never registered in time. Nodes that are starting don't count
// as unready, and those that are lost don't count at all. As Cluster Autoscaler's
// IsClusterHealthy. It costs O(nodes that aren't ready).
func Sick(s *cluster.State, req *autoscaler.Request) string {
	nodes, unready := live(s, req.Conditions), 0
	s.Unready(func(n *cluster.Node) {
		if !isLost(req.Conditions, n) && !n.HasTaint(autoscaler.ToBeDeletedTaint) && !req.Readiness.Starting(n.NodeInfo, s.Group(n.Group), req.ServerNow) {
			unready++
		}
	})
	for _, c := range req.Conditions {
		unready += c.LongUnregistered
	}
	limits := &req.Limits
	if unready <= limits.OKTotalUnready || float64(unready) <= limits.MaxTotalUnready/100*float64(nodes) {
		return ""
	}
	return fmt.Sprintf("the cluster is unhealthy: %d of %d nodes are not ready", unready, nodes)
}
