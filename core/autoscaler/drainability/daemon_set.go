package drainability

import "github.com/berthproject/berth/core/cluster"

// daemonSet: a DaemonSet's pod goes with its node, and one that is treated so
// (cluster.DaemonPodAnnotation). Whether it is evicted first is no matter for a plan.
func daemonSet(_ *Context, p *cluster.Pod) (Outcome, string, bool) {
	return Ignore, "", p.OfNode && p.Daemon()
}
