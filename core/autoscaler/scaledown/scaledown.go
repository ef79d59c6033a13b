// Package scaledown finds the nodes that the cluster can do without: those on which
// nothing runs but daemon and mirror pods.
package scaledown

import (
	"slices"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// Removable tells whether a node may be deleted as far as the node itself says: it is in
// a node group and empty, no pod is nominated to it, and neither the API nor its
// annotation says otherwise. What the group's minimum and timers say is for others.
func Removable(n *cluster.Node) bool {
	return n.Group != "" && Empty(n) && len(n.Nominated) == 0 &&
		n.Object.DeletionTimestamp == nil && n.Object.Annotations[autoscaler.ScaleDownDisabledAnnotation] != "true"
}

// Empty tells whether nothing but daemon and mirror pods is on the node.
func Empty(n *cluster.Node) bool { return n.Workload == 0 }

// Candidates returns the names of the removable nodes, sorted. A node that isn't ready is
// one of them only when its creation is longer ago than startup: before, it is coming.
func Candidates(s *cluster.State, now time.Time, startup time.Duration) []string {
	var out []string
	s.Nodes(func(n *cluster.Node) {
		if Removable(n) && (n.Ready() || now.Sub(n.Object.CreationTimestamp.Time) > startup) {
			out = append(out, n.Name)
		}
	})
	slices.Sort(out)
	return out
}
