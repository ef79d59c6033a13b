package testkit

import (
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// This file builds the other objects that rules read: disruption budgets, namespaces,
// pod groups, and workloads by their selectors. Those with a namespace are in namespace "default".

// Budget returns a disruption budget over pods with a label, of which so many may be
// disrupted now.
func Budget(name string, allowed int32, k, v string) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{}
	b.Namespace, b.Name = "default", name
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{k: v}}
	b.Status.DisruptionsAllowed = allowed
	return b
}

// Namespace returns a namespace with labels, given as key, value pairs.
func Namespace(name string, pairs ...string) *v1.Namespace {
	n := &v1.Namespace{}
	n.Name, n.Labels = name, labelMap(pairs)
	return n
}

// Service returns a Service that selects by labels, given as key, value pairs.
func Service(name string, pairs ...string) *v1.Service {
	s := &v1.Service{Spec: v1.ServiceSpec{Selector: labelMap(pairs)}}
	s.Namespace, s.Name = "default", name
	return s
}

// ReplicationController returns a ReplicationController that selects by labels.
func ReplicationController(name string, pairs ...string) *v1.ReplicationController {
	r := &v1.ReplicationController{Spec: v1.ReplicationControllerSpec{Selector: labelMap(pairs)}}
	r.Namespace, r.Name = "default", name
	return r
}

// ReplicaSet returns a ReplicaSet that selects by labels.
func ReplicaSet(name string, pairs ...string) *appsv1.ReplicaSet {
	r := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labelMap(pairs)}}}
	r.Namespace, r.Name = "default", name
	return r
}

// StatefulSet returns a StatefulSet that selects by labels.
func StatefulSet(name string, pairs ...string) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labelMap(pairs)}}}
	s.Namespace, s.Name = "default", name
	return s
}

// labelMap returns key, value pairs as a map: an empty one, not nil, for none.
func labelMap(pairs []string) map[string]string {
	out := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

// PodGroup returns a PodGroup of which so many members are placed together; 0 for the basic policy.
// With a label all members' nodes have to have one value of it.
func PodGroup(name string, minCount int, label string) *schedulingv1beta1.PodGroup {
	g := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("group-" + name)}}
	if minCount > 0 {
		g.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(minCount)}
	} else {
		g.Spec.SchedulingPolicy.Basic = &schedulingv1beta1.BasicSchedulingPolicy{}
	}
	if label != "" {
		g.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: label}}}
	}
	return g
}
