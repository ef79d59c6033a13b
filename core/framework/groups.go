package framework

import "github.com/berthproject/berth/core/cluster"

// Groups are the groups of nodes that a GroupRule answers for, as parallel slices:
// index i is the same group in each. They belong to the engine and are valid until
// the call returns; rules only read them. Their order is the engine's and means
// nothing.
type Groups struct {
	Nodes   []int32            // candidates in the group: nodes that no rule so far rejects. Where it is 0 the answers don't count
	Static  []int32            // the rule's StaticKey
	Host    []int32            // the rule's HostKey
	Domains [][]cluster.Domain // by topology key, in the order of the rule's TopologyKeys, then by group
}

// Len returns the number of groups.
func (g *Groups) Len() int { return len(g.Nodes) }
