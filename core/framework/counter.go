package framework

import "github.com/berthproject/berth/core/cluster"

// Counter is implemented by local rules that can say for how many pods of the class, put
// on one node one after the other, EvalNode would go on returning OK. Scale-up counts
// nodes with it instead of placing every pod. Classes with a local rule that reads a
// node's pods (ReadsPods) and is no Counter are packed pod by pod.
type Counter interface {
	// Count returns that number for a node, which may be in no state
	// (cluster.DetachedNode); Unlimited when the rule sets no limit.
	Count(n *cluster.Node) int
}

// Unlimited is what Count returns when the rule sets no limit.
const Unlimited = int(^uint(0) >> 1)
