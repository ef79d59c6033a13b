package podtopologyspread

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	nodeaffinityrule "github.com/berthproject/berth/core/plugins/nodeaffinity"
	"github.com/berthproject/berth/core/plugins/tainttoleration"
)

// constraint is one of a pod's constraints, resolved.
type constraint struct {
	key           string
	maxSkew       int32
	minDomains    int32
	selector      labels.Selector
	honorAffinity bool
	honorTaints   bool
}

// constraints are those of one pod.
type constraints struct {
	hard, soft []constraint
	// requireAll leaves nodes without one of the keys out of the soft ones. With
	// system defaults such nodes count.
	requireAll bool
	problem    string // why a constraint can't be read; such a pod isn't placed
}

func (c *constraints) none() bool { return len(c.hard)+len(c.soft) == 0 }

// systemDefaults are the constraints of defaultingType System.
var systemDefaults = []v1.TopologySpreadConstraint{
	{TopologyKey: v1.LabelHostname, WhenUnsatisfiable: v1.ScheduleAnyway, MaxSkew: 3},
	{TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.ScheduleAnyway, MaxSkew: 5},
}

// of returns the pod's constraints: its own, or else the defaults over what
// selects it.
func (p Plugin) of(pod *cluster.Pod, state *cluster.State) constraints {
	own := pod.Object.Spec.TopologySpreadConstraints
	out := constraints{requireAll: len(own) > 0 || p.args.List}
	list, selector := own, labels.Selector(nil)
	if len(own) == 0 {
		if list = p.args.Constraints; !p.args.List {
			list = systemDefaults
		}
		if len(list) == 0 {
			return out
		}
		if selector = defaultSelector(pod, state); selector.Empty() {
			return out
		}
	}
	for i := range list {
		if _, err := metav1.LabelSelectorAsSelector(list[i].LabelSelector); err != nil && out.problem == "" {
			out.problem = fmt.Sprintf("topologySpreadConstraints[%d].labelSelector: %v", i, err)
		}
		c := resolve(pod, &list[i], selector)
		switch list[i].WhenUnsatisfiable {
		case v1.ScheduleAnyway:
			out.soft = append(out.soft, c)
		case v1.DoNotSchedule:
			out.hard = append(out.hard, c)
		}
	}
	return out
}

func resolve(pod *cluster.Pod, c *v1.TopologySpreadConstraint, selector labels.Selector) constraint {
	out := constraint{
		key: c.TopologyKey, maxSkew: c.MaxSkew, minDomains: 1, selector: selector,
		honorAffinity: c.NodeAffinityPolicy == nil || *c.NodeAffinityPolicy == v1.NodeInclusionPolicyHonor,
		honorTaints:   c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == v1.NodeInclusionPolicyHonor,
	}
	if c.MinDomains != nil {
		out.minDomains = *c.MinDomains
	}
	if selector == nil {
		out.selector = explicit(pod, c)
	}
	return out
}

func explicit(pod *cluster.Pod, c *v1.TopologySpreadConstraint) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
	if err != nil {
		return labels.Nothing() // the API server lets none in
	}
	if _, selectable := selector.Requirements(); !selectable {
		return selector
	}
	for _, key := range c.MatchLabelKeys {
		if value, ok := pod.Object.Labels[key]; ok {
			if r, err := labels.NewRequirement(key, "in", []string{value}); err == nil {
				selector = selector.Add(*r)
			}
		}
	}
	return selector
}

// inclusion returns which nodes count (KEP-3094), nil for all, and a text that
// tells filters apart. Nodes without one of the required keys don't.
func inclusion(pod *cluster.Pod, c *constraint, required []string) (cluster.NodeFilter, string) {
	f := &filter{keys: required}
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
	if len(f.keys) == 0 && !f.byAffinity && !f.byTaints {
		return nil, ""
	}
	return f, string(sig.Bytes())
}

func keysOf(list []constraint) []string {
	var out []string
	for i := range list {
		out = append(out, list[i].key)
	}
	return out
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
