package drainability

import "github.com/berthproject/berth/core/cluster"

// terminal: a pod that has run to its end needs no other node. (Cluster Autoscaler has it
// evicted with the others.)
func terminal(_ *Context, p *cluster.Pod) (Outcome, string, bool) {
	return Ignore, "", p.Eviction.Ended
}
