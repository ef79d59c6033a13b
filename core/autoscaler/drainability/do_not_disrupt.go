package drainability

import "github.com/berthproject/berth/core/cluster"

// doNotDisrupt: Karpenter's annotation keeps the pod's node as long as the pod runs, a
// DaemonSet's pod included. A pod that terminates or has ended isn't disrupted any more.
func doNotDisrupt(_ *Context, p *cluster.Pod) (Outcome, string, bool) {
	if e := &p.Eviction; !e.DoNotDisrupt || e.Terminating || e.Ended {
		return 0, "", false
	}
	return Block, "has the annotation " + cluster.DoNotDisruptAnnotation + ": true", true
}
