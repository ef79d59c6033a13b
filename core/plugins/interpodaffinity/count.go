package interpodaffinity

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// This file counts pods onto a node by required anti-affinity over the hostname, the
// pod's own and others'. It has to agree with Filter wherever no two nodes have one
// hostname.

// hostRule is the rule of a class whose required terms are anti-affinity over the
// hostname, and no others: whether a node takes a pod is then up to the pods on it.
type hostRule struct {
	*rule
	apart bool // of two pods of the class, one keeps the other away
}

var (
	_ framework.Counter   = hostRule{}
	_ framework.NodeBound = (*rule)(nil)
)

// ofHostsOnly reports whether a rule can be a hostRule. One with required affinity can't: a node takes pods once the pods
// that they need have come to it, while packing counts what an empty node takes.
func (r *rule) ofHostsOnly() bool { return len(r.affinity) == 0 && r.NodeBound() }

// NodeBound implements framework.NodeBound: all required terms are over the hostname. Affinity that the pod itself meets
// isn't bound, since the first pod of such a kind asks whether there is another anywhere.
func (r *rule) NodeBound() bool {
	wide := func(c counted) bool { return c.domain >= 0 }
	return !slices.ContainsFunc(r.affinity, wide) && !slices.ContainsFunc(r.filters, wide) && (len(r.affinity) == 0 || !r.selectsItself)
}

// Count implements framework.Counter, in O(pods of the node × terms).
func (r hostRule) Count(n *cluster.Node) int {
	if !n.HasLabel(v1.LabelHostname) {
		return framework.Unlimited
	}
	for _, p := range n.Pods {
		if r.anyFilter(func(f *counted) bool { return f.Counts(p) }) {
			return 0
		}
	}
	if r.apart {
		return 1
	}
	return framework.Unlimited
}
