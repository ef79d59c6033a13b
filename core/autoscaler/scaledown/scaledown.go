// Package scaledown finds nodes that the cluster can do without. For now those
// are empty nodes: nothing runs there but daemon and mirror pods.
package scaledown

import (
	"slices"
	"time"

	"github.com/berthproject/berth/core/cluster"
)

// DisabledAnnotation keeps a node when its value is "true".
const DisabledAnnotation = "cluster-autoscaler.kubernetes.io/scale-down-disabled"

// Removable tells whether a node of a group is empty and may go.
func Removable(n *cluster.Node) bool {
	return n.Group != "" && n.Object.DeletionTimestamp == nil &&
		n.Object.Annotations[DisabledAnnotation] != "true" && len(n.Nominated) == 0 && Empty(n)
}

// Empty tells whether nothing but daemon and mirror pods is on the node.
func Empty(n *cluster.Node) bool {
	return !slices.ContainsFunc(n.Pods, func(p *cluster.Pod) bool { return !p.Daemon() && !p.Mirror() })
}

// Candidates returns the removable nodes by name: ready ones, and those that
// have had startup to become so.
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
