package podtopologyspread

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berthproject/berth/core/cluster"
)

// This file says which constraints hold for a pod: its own, or else the default
// ones, for pods that a Service or a controller selects (KEP-1258). Everything in
// it follows from the pod and from the workloads of its namespace.

// constraint is one constraint of a pod, with all defaults filled in.
type constraint struct {
	key        string // topologyKey
	maxSkew    int64
	minDomains int32 // of hard constraints, KEP-3022; 1 means none
	// selector selects the pods that count. An empty one selects no other pod, but
	// the pod itself (as in kube-scheduler's countPodsMatchSelector).
	selector labels.Selector
	text     string // cluster.SelectorText of it
	// honorAffinity and honorTaints leave nodes out of the counts that the pod's
	// node affinity, or a taint, keeps it off (KEP-3094).
	honorAffinity bool
	honorTaints   bool
}

// constraints are all constraints of a pod. Both lists keep the order of the pod.
type constraints struct {
	hard []constraint // DoNotSchedule: reject nodes
	soft []constraint // ScheduleAnyway: score nodes
	// requireAll says that a node without one of the soft constraints' keys counts
	// for none of them and scores 0. Under the system defaults such nodes count,
	// since clusters without zones have no zone label.
	requireAll bool
	// problem is why a selector can't be read, for people; such a pod is rejected
	// everywhere. The API server lets no such pod in.
	problem string
}

func (c *constraints) none() bool { return len(c.hard)+len(c.soft) == 0 }

// systemDefaults are the constraints of defaultingType System.
var systemDefaults = []v1.TopologySpreadConstraint{
	{TopologyKey: v1.LabelHostname, WhenUnsatisfiable: v1.ScheduleAnyway, MaxSkew: 3},
	{TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.ScheduleAnyway, MaxSkew: 5},
}

// constraintsOf returns the pod's own constraints, or else the default ones. A pod
// that no workload selects has no default constraints.
func (p Plugin) constraintsOf(pod *cluster.Pod, state *cluster.State) constraints {
	list := pod.Object.Spec.TopologySpreadConstraints
	out := constraints{requireAll: len(list) > 0 || p.args.List}
	var defaults cluster.SpreadSelector
	if len(list) == 0 {
		if list = p.args.Constraints; !p.args.List {
			list = systemDefaults
		}
		if len(list) == 0 || p.packing && !p.hardDefaults() {
			return out
		}
		if defaults.Selector = defaultSelector(pod, state); defaults.Selector.Empty() {
			return out
		}
		defaults.Text = cluster.SelectorText(defaults.Selector)
	}
	for i := range list {
		hard := list[i].WhenUnsatisfiable == v1.DoNotSchedule
		if !hard && list[i].WhenUnsatisfiable != v1.ScheduleAnyway {
			continue // it is of no kind, and kube-scheduler doesn't look at it
		}
		selects := &defaults
		if len(pod.Spread) > 0 {
			selects = &pod.Spread[i]
		}
		if out.problem == "" {
			out.problem = selects.Problem
		}
		c := resolve(&list[i], selects)
		if hard {
			out.hard = append(out.hard, c)
		} else if !p.packing || len(pod.Object.Spec.TopologySpreadConstraints) > 0 {
			out.soft = append(out.soft, c)
		}
	}
	return out
}

// resolve fills in the defaults of a constraint.
func resolve(c *v1.TopologySpreadConstraint, selects *cluster.SpreadSelector) constraint {
	out := constraint{
		key: c.TopologyKey, maxSkew: int64(c.MaxSkew), minDomains: 1, selector: selects.Selector, text: selects.Text,
		honorAffinity: c.NodeAffinityPolicy == nil || *c.NodeAffinityPolicy == v1.NodeInclusionPolicyHonor,
		honorTaints:   c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == v1.NodeInclusionPolicyHonor,
	}
	if c.MinDomains != nil {
		out.minDomains = *c.MinDomains
	}
	return out
}

// defaultSelector merges the selectors of the Services that select the pod and
// of the controller that owns it (kube-scheduler's helper.DefaultSelector). It is
// empty when there are none.
func defaultSelector(pod *cluster.Pod, state *cluster.State) labels.Selector {
	set := labels.Set{}
	namespace := pod.Object.Namespace
	// Selecting has no order, and needs none: Services that select one pod agree on
	// its labels, so they never disagree about a key.
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
