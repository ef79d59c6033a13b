package drainability

import "github.com/berthproject/berth/core/cluster"

// mirror: the API's image of a static pod can't be evicted, and goes with its node.
func mirror(_ *Context, p *cluster.Pod) (Outcome, string, bool) {
	return Ignore, "", p.OfNode && p.Mirror()
}
