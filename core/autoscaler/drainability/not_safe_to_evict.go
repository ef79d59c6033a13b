package drainability

import "github.com/berthproject/berth/core/cluster"

// notSafeToEvict: the annotation safe-to-evict=false keeps the pod's node.
func notSafeToEvict(_ *Context, p *cluster.Pod) (Outcome, string, bool) {
	return Block, "has the annotation " + cluster.SafeToEvictAnnotation + ": false", p.Eviction.Safe == cluster.SafeFalse
}
