package testkit

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// This file builds nodes.

// NodeBuilder builds a Node.
type NodeBuilder struct{ v1.Node }

// Node starts a ready node that has room for 110 pods and nothing else, with its hostname
// label.
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
	maps.Copy(b.Status.Allocatable, quantities(pairs))
	return b
}

// Images adds an image with its size and names.
func (b *NodeBuilder) Images(bytes int64, names ...string) *NodeBuilder {
	b.Status.Images = append(b.Status.Images, v1.ContainerImage{Names: names, SizeBytes: bytes})
	return b
}

// Label sets a label.
func (b *NodeBuilder) Label(k, v string) *NodeBuilder { b.Labels[k] = v; return b }

// Unlabel takes a label off the node.
func (b *NodeBuilder) Unlabel(k string) *NodeBuilder { delete(b.Labels, k); return b }

// Zone sets the zone label.
func (b *NodeBuilder) Zone(z string) *NodeBuilder { return b.Label(v1.LabelTopologyZone, z) }

// Taint adds a taint.
func (b *NodeBuilder) Taint(k, v string, e v1.TaintEffect) *NodeBuilder {
	b.Spec.Taints = append(b.Spec.Taints, v1.Taint{Key: k, Value: v, Effect: e})
	return b
}

// Cordon makes the node unschedulable.
func (b *NodeBuilder) Cordon() *NodeBuilder { b.Spec.Unschedulable = true; return b }

// Features sets the features that the kubelet declares.
func (b *NodeBuilder) Features(names ...string) *NodeBuilder {
	b.Status.DeclaredFeatures = names
	return b
}

// Obj returns the node.
func (b *NodeBuilder) Obj() *v1.Node { return &b.Node }
