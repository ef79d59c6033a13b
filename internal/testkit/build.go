// Package testkit builds API objects and random clusters for tests.
package testkit

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// NodeBuilder builds a Node.
type NodeBuilder struct{ v1.Node }

// Node starts a node with 110 pods and its hostname label.
func Node(name string) *NodeBuilder {
	b := &NodeBuilder{}
	b.Name = name
	b.UID = types.UID("node-" + name)
	b.Labels = map[string]string{v1.LabelHostname: name}
	b.Status.Allocatable = v1.ResourceList{v1.ResourcePods: resource.MustParse("110")}
	b.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	return b
}

// Alloc sets allocatable quantities, given as name, quantity pairs.
func (b *NodeBuilder) Alloc(pairs ...string) *NodeBuilder {
	for i := 0; i < len(pairs); i += 2 {
		b.Status.Allocatable[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return b
}

// Label sets a label.
func (b *NodeBuilder) Label(k, v string) *NodeBuilder { b.Labels[k] = v; return b }

// Zone sets the zone label.
func (b *NodeBuilder) Zone(z string) *NodeBuilder { return b.Label(v1.LabelTopologyZone, z) }

// Taint adds a taint.
func (b *NodeBuilder) Taint(k, v string, e v1.TaintEffect) *NodeBuilder {
	b.Spec.Taints = append(b.Spec.Taints, v1.Taint{Key: k, Value: v, Effect: e})
	return b
}

// Cordon makes the node unschedulable.
func (b *NodeBuilder) Cordon() *NodeBuilder { b.Spec.Unschedulable = true; return b }

// Obj returns the node.
func (b *NodeBuilder) Obj() *v1.Node { return &b.Node }

// PodBuilder builds a Pod.
type PodBuilder struct{ v1.Pod }

// Pod starts a pod of namespace "default" with one empty container.
func Pod(name string) *PodBuilder {
	b := &PodBuilder{}
	b.Namespace, b.Name = "default", name
	b.UID = types.UID("pod-" + name)
	b.Spec.SchedulerName = v1.DefaultSchedulerName
	b.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{}}}}
	return b
}

// Req sets requests, given as name, quantity pairs.
func (b *PodBuilder) Req(pairs ...string) *PodBuilder {
	for i := 0; i < len(pairs); i += 2 {
		b.Spec.Containers[0].Resources.Requests[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return b
}

// Namespaced sets the namespace.
func (b *PodBuilder) Namespaced(ns string) *PodBuilder { b.Pod.Namespace = ns; return b }

// Label sets a label.
func (b *PodBuilder) Label(k, v string) *PodBuilder {
	if b.Labels == nil {
		b.Labels = map[string]string{}
	}
	b.Labels[k] = v
	return b
}

// Priority sets the priority.
func (b *PodBuilder) Priority(p int32) *PodBuilder { b.Spec.Priority = &p; return b }

// Tolerate adds a toleration for a taint key with any value.
func (b *PodBuilder) Tolerate(key string) *PodBuilder {
	b.Spec.Tolerations = append(b.Spec.Tolerations, v1.Toleration{Key: key, Operator: v1.TolerationOpExists})
	return b
}

// Select adds a nodeSelector entry.
func (b *PodBuilder) Select(k, v string) *PodBuilder {
	if b.Spec.NodeSelector == nil {
		b.Spec.NodeSelector = map[string]string{}
	}
	b.Spec.NodeSelector[k] = v
	return b
}

func (b *PodBuilder) nodeAffinity() *v1.NodeAffinity {
	if b.Spec.Affinity == nil {
		b.Spec.Affinity = &v1.Affinity{}
	}
	if b.Spec.Affinity.NodeAffinity == nil {
		b.Spec.Affinity.NodeAffinity = &v1.NodeAffinity{}
	}
	return b.Spec.Affinity.NodeAffinity
}

// RequireIn requires a node label to have one of the values.
func (b *PodBuilder) RequireIn(key string, values ...string) *PodBuilder {
	a := b.nodeAffinity()
	if a.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		a.RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{}
	}
	s := a.RequiredDuringSchedulingIgnoredDuringExecution
	s.NodeSelectorTerms = append(s.NodeSelectorTerms, v1.NodeSelectorTerm{
		MatchExpressions: []v1.NodeSelectorRequirement{{Key: key, Operator: v1.NodeSelectorOpIn, Values: values}},
	})
	return b
}

// PreferIn prefers nodes with a label.
func (b *PodBuilder) PreferIn(weight int32, key string, values ...string) *PodBuilder {
	a := b.nodeAffinity()
	a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
		v1.PreferredSchedulingTerm{Weight: weight, Preference: v1.NodeSelectorTerm{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: key, Operator: v1.NodeSelectorOpIn, Values: values}},
		}})
	return b
}

// Apart requires pods with a label to be in other domains of a topology key.
func (b *PodBuilder) Apart(topologyKey, k, v string) *PodBuilder {
	if b.Spec.Affinity == nil {
		b.Spec.Affinity = &v1.Affinity{}
	}
	if b.Spec.Affinity.PodAntiAffinity == nil {
		b.Spec.Affinity.PodAntiAffinity = &v1.PodAntiAffinity{}
	}
	a := b.Spec.Affinity.PodAntiAffinity
	a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution,
		v1.PodAffinityTerm{TopologyKey: topologyKey, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{k: v}}})
	return b
}

// SpreadSoft adds a ScheduleAnyway constraint over pods with a label.
func (b *PodBuilder) SpreadSoft(topologyKey string, maxSkew int32, k, v string) *PodBuilder {
	b.Spec.TopologySpreadConstraints = append(b.Spec.TopologySpreadConstraints, v1.TopologySpreadConstraint{
		MaxSkew: maxSkew, TopologyKey: topologyKey, WhenUnsatisfiable: v1.ScheduleAnyway,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{k: v}},
	})
	return b
}

// HostPort asks for a host port.
func (b *PodBuilder) HostPort(port int32) *PodBuilder {
	c := &b.Spec.Containers[0]
	c.Ports = append(c.Ports, v1.ContainerPort{HostPort: port, ContainerPort: port, Protocol: v1.ProtocolTCP})
	return b
}

// Owner sets the controlling owner.
func (b *PodBuilder) Owner(apiVersion, kind, name string) *PodBuilder {
	b.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(kind + name), Controller: new(true)}}
	return b
}

// Gate adds a scheduling gate.
func (b *PodBuilder) Gate(name string) *PodBuilder {
	b.Spec.SchedulingGates = append(b.Spec.SchedulingGates, v1.PodSchedulingGate{Name: name})
	return b
}

// On sets spec.nodeName.
func (b *PodBuilder) On(node string) *PodBuilder { b.Spec.NodeName = node; return b }

// Obj returns the pod.
func (b *PodBuilder) Obj() *v1.Pod { return &b.Pod }

// Names returns prefix0 … prefix(n-1).
func Names(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(prefix, i)
	}
	return out
}

// Must returns what a constructor returned, in tests where it has no reason to
// fail; it panics when it did.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
