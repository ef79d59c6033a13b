package drainability

import "github.com/berthproject/berth/core/cluster"

// onCompletion: the annotation safe-to-evict=on-completion lets the pod run to its end; the
// node may go afterwards.
func onCompletion(_ *Context, p *cluster.Pod) (Outcome, string, bool) {
	return WaitFor, "has the annotation " + cluster.SafeToEvictAnnotation + ": on-completion", p.Eviction.Safe == cluster.SafeOnCompletion
}
