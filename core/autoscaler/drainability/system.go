package drainability

import "github.com/berthproject/berth/core/cluster"

// system: a pod of kube-system that no disruption budget covers keeps its node, until
// --blocking-system-pod-distruption-timeout after its creation. Then it is evicted, and the
// rules behind this one aren't asked. The rule is asked with --skip-nodes-with-system-pods
// only.
func system(c *Context, p *cluster.Pod) (Outcome, string, bool) {
	if !c.Rules.SkipSystemPods || p.Object.Namespace != cluster.SystemNamespace {
		return 0, "", false
	}
	for _, b := range c.State.Budgets(cluster.SystemNamespace) {
		if b.Covers(p) {
			return 0, "", false
		}
	}
	created := p.Object.CreationTimestamp
	if !created.IsZero() {
		until := created.Add(c.Rules.SystemPodTimeout)
		if c.Now.After(until) {
			return Evict, "", true
		}
		c.holdsUntil(until)
	}
	return Block, "is in namespace " + cluster.SystemNamespace + ", is covered by no disruption budget, and was created less than " + c.Rules.SystemPodTimeout.String() + " ago", true
}
