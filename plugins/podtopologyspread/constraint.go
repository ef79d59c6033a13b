package podtopologyspread

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/berthproject/berth/cluster"
	"github.com/berthproject/berth/framework"
	nodeaffinityrule "github.com/berthproject/berth/plugins/nodeaffinity"
	"github.com/berthproject/berth/plugins/tainttoleration"
)

// constraint is a soft constraint, resolved for one pod.
type constraint struct {
	key           string
	maxSkew       int32
	selector      labels.Selector
	honorAffinity bool
	honorTaints   bool
}

// constraints returns the pod's soft constraints. With system defaults, nodes
// without a key count too (requireAll is false).
func constraints(pod *cluster.Pod, state *cluster.State) (list []constraint, requireAll bool) {
	own := pod.Object.Spec.TopologySpreadConstraints
	for i := range own {
		if own[i].WhenUnsatisfiable == v1.ScheduleAnyway {
			list = append(list, explicit(pod, &own[i]))
		}
	}
	if len(own) > 0 {
		return list, true
	}
	selector := defaultSelector(pod, state)
	if selector.Empty() {
		return nil, false
	}
	return []constraint{
		{key: v1.LabelHostname, maxSkew: 3, selector: selector, honorAffinity: true},
		{key: v1.LabelTopologyZone, maxSkew: 5, selector: selector, honorAffinity: true},
	}, false
}

func explicit(pod *cluster.Pod, c *v1.TopologySpreadConstraint) constraint {
	selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
	if err != nil {
		selector = labels.Nothing() // the API server lets none in
	}
	for _, key := range c.MatchLabelKeys {
		if value, ok := pod.Object.Labels[key]; ok {
			if r, err := labels.NewRequirement(key, "in", []string{value}); err == nil {
				selector = selector.Add(*r)
			}
		}
	}
	return constraint{
		key: c.TopologyKey, maxSkew: c.MaxSkew, selector: selector,
		honorAffinity: c.NodeAffinityPolicy == nil || *c.NodeAffinityPolicy == v1.NodeInclusionPolicyHonor,
		honorTaints:   c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == v1.NodeInclusionPolicyHonor,
	}
}

// inclusion returns which nodes count (KEP-3094), nil for all, and a text that
// tells filters apart.
func inclusion(pod *cluster.Pod, c *constraint, list []constraint, requireAll bool) (cluster.NodeFilter, string) {
	f := &filter{}
	var sig framework.Signature
	if requireAll {
		for i := range list {
			f.keys = append(f.keys, list[i].key)
			sig.Str(list[i].key)
		}
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
	if len(f.keys) == 0 && !f.byAffinity && !f.byTaints {
		return nil, ""
	}
	return f, string(sig.Bytes())
}

type filter struct {
	keys        []string
	affinity    nodeaffinity.RequiredNodeAffinity
	byAffinity  bool
	tolerations []v1.Toleration
	byTaints    bool
}

func (f *filter) Match(n *cluster.NodeInfo) bool {
	for _, k := range f.keys {
		if _, ok := n.Object.Labels[k]; !ok {
			return false
		}
	}
	if f.byAffinity {
		if ok, _ := f.affinity.Match(n.Object); !ok {
			return false
		}
	}
	if f.byTaints {
		for i := range n.Object.Spec.Taints {
			t := &n.Object.Spec.Taints[i]
			if t.Effect != v1.TaintEffectPreferNoSchedule && !tainttoleration.Tolerated(f.tolerations, t) {
				return false
			}
		}
	}
	return true
}

// defaultSelector merges the selectors of what selects the pod, as
// kube-scheduler's helper.DefaultSelector does.
func defaultSelector(pod *cluster.Pod, state *cluster.State) labels.Selector {
	set := labels.Set{}
	namespace := pod.Object.Namespace
	// Services that select one pod agree on its labels, so their order is
	// nothing to the merged set.
	state.Selecting(namespace, pod.Object.Labels, func(service *cluster.Workload) { set = labels.Merge(set, service.Set) })
	selector := set.AsSelector()
	owner := metav1.GetControllerOfNoCopy(pod.Object)
	if owner == nil {
		return selector
	}
	switch {
	case owner.Kind == string(cluster.ReplicationController) && owner.APIVersion == "v1":
		if w := state.Workload(cluster.ReplicationController, namespace, owner.Name); w != nil {
			return labels.Merge(set, w.Set).AsSelector()
		}
	case (owner.Kind == string(cluster.ReplicaSet) || owner.Kind == string(cluster.StatefulSet)) && owner.APIVersion == "apps/v1":
		if w := state.Workload(cluster.WorkloadKind(owner.Kind), namespace, owner.Name); w != nil {
			if reqs, ok := w.Selector.Requirements(); ok {
				return selector.Add(reqs...)
			}
		}
	}
	return selector
}
