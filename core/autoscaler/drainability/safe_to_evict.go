package drainability

import "github.com/berthproject/berth/core/cluster"

// safeToEvict: the annotation safe-to-evict=true has the pod evicted whatever the rules
// behind this one would say.
func safeToEvict(_ *Context, p *cluster.Pod) (Outcome, string, bool) {
	return Evict, "", p.Eviction.Safe == cluster.SafeTrue
}
