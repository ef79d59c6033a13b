package cluster

// What is found of nodes without a walk over them. Invariant: it is what a walk over the
// nodes that there are would find; apply and undo keep it so.

// nodeIndex is what State finds of its nodes beside their names.
type nodeIndex struct {
	providers map[string]int // how many nodes have a provider ID; only those that some node has
	unready   map[NodeIndex]bool
}

func (x *nodeIndex) init() {
	x.providers, x.unready = map[string]int{}, map[NodeIndex]bool{}
}

// count adds what a node's object says, or with -1 takes it away.
func (x *nodeIndex) count(i NodeIndex, info *NodeInfo, times int) {
	if id := info.Object.Spec.ProviderID; id != "" {
		addTo(x.providers, id, times)
	}
	switch {
	case times < 0:
		delete(x.unready, i)
	case !info.Ready():
		x.unready[i] = true
	}
}

// HasProviderID reports whether a node's spec has this provider ID.
func (s *State) HasProviderID(id string) bool { return s.index.providers[id] > 0 }

// Unready calls f with each node that isn't ready, in no particular order.
func (s *State) Unready(f func(*Node)) {
	for i := range s.index.unready {
		f(s.nodes[i])
	}
}
