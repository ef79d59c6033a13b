package podtopologyspread

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	nodeaffinityrule "github.com/berthproject/berth/core/plugins/nodeaffinity"
	"github.com/berthproject/berth/core/plugins/tainttoleration"
)

// inclusion returns which nodes a constraint counts pods and domains on
// (KEP-3094), nil for all nodes: those that have every key in required, and that
// the pod may go to as far as the constraint's policies say. The text is the same
// for two filters exactly when they pass the same nodes for the same reasons: it
// is part of the fact's key.
func inclusion(pod *cluster.Pod, c *constraint, required []string) (cluster.NodeFilter, string) {
	f := &nodeFilter{keys: required}
	var sig framework.Signature
	for _, k := range required {
		sig.Str(k)
	}
	if c.honorAffinity && nodeaffinityrule.Restricts(pod) {
		f.byAffinity = true
		f.affinity = nodeaffinity.GetRequiredNodeAffinity(pod.Object)
		sig.Bool(true)
		nodeaffinityrule.SignRequired(pod, &sig)
	}
	if c.honorTaints {
		f.byTaints = true
		f.tolerations = pod.Object.Spec.Tolerations
		sig.Bool(false)
		tainttoleration.Plugin{}.Sign(pod, nil, &sig, nil)
	}
	text := string(sig.Bytes())
	if text == "" { // nothing is demanded of a node
		return nil, ""
	}
	return f, text
}

// nodeFilter implements cluster.NodeFilter. It reads labels and taints only: a
// change of these makes the state count the node again.
type nodeFilter struct {
	keys        []string // labels that the node must have
	affinity    nodeaffinity.RequiredNodeAffinity
	byAffinity  bool
	tolerations []v1.Toleration
	byTaints    bool
}

// Match implements cluster.NodeFilter.
func (f *nodeFilter) Match(n *cluster.NodeInfo) bool {
	for _, k := range f.keys {
		if !n.HasLabel(k) {
			return false
		}
	}
	if f.byAffinity {
		if ok, _ := f.affinity.Match(n.Object); !ok {
			return false
		}
	}
	if f.byTaints {
		for i := range n.Taints {
			t := &n.Taints[i]
			if t.Effect != v1.TaintEffectPreferNoSchedule && !tainttoleration.Tolerated(f.tolerations, t) {
				return false
			}
		}
	}
	return true
}

// keysOf returns the topology keys of constraints, in their order.
func keysOf(list []constraint) []string {
	var out []string
	for i := range list {
		out = append(out, list[i].key)
	}
	return out
}
