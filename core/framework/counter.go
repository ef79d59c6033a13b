package framework

import "github.com/berthproject/berth/core/cluster"

// Counter is implemented by rules that can say for how many pods of the class, put on
// one node one after the other, they would go on returning OK. Scale-up counts nodes with
// it instead of placing every pod.
//
// A local rule that reads a node's pods (ReadsPods), or a group rule that may reject a
// node, has to be a Counter, or else its classes are packed pod by pod. A group rule is one
// for a class where all that it rejects a node for is on that node, given that no two
// nodes have one hostname. It counts pods that the state knows the terms of
// (State.LearnTerms), the class's own included.
type Counter interface {
	// Count returns that number for a node, which may be in no state
	// (cluster.DetachedNode); Unlimited when the rule sets no limit.
	Count(n *cluster.Node) int
}

// NodeBound is implemented by group rules that may reject a node only for what is on that node, given that no two nodes
// have one hostname. Such a rule needn't be a Counter: a node may take more pods when others have come to it.
type NodeBound interface {
	// NodeBound reports whether that holds, which it does for the life of the rule or never.
	NodeBound() bool
}

// ClaimCounter is implemented by local rules of pods that claim devices.
type ClaimCounter interface {
	Counter
	// CountsClaims reports whether each pod has claims of its own, and what is allocated for them on a
	// node leaves as much on all others. Count then counts the claims of the node's pods that have no
	// devices in the state, in the order of the pods.
	CountsClaims() bool
}

// Unlimited is what Count returns when the rule sets no limit.
const Unlimited = int(^uint(0) >> 1)
