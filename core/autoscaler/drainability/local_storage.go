package drainability

import "github.com/berthproject/berth/core/cluster"

// localStorage: a pod with data on its node's disk (emptyDir that isn't in memory, hostPath)
// keeps the node, unless its annotation safe-to-evict-local-volumes names all such volumes.
// The rule is asked with --skip-nodes-with-local-storage only.
func localStorage(c *Context, p *cluster.Pod) (Outcome, string, bool) {
	if !c.Rules.SkipLocalStorage || p.Eviction.LocalVolume == "" {
		return 0, "", false
	}
	return Block, "would lose its local volume " + p.Eviction.LocalVolume, true
}
