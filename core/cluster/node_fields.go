package cluster

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// What Berth reads of a Node. What isn't here stays out of recordings: addresses,
// what the kubelet says about itself, annotations of others, the volumes in use. A
// heartbeat changes none of it.

var nodeFields = []field[v1.Node, *NodeInfo]{
	// The UID tells a node from one of the same name that came after it.
	{"metadata", func(to, from *v1.Node) { to.ObjectMeta = trimMeta(&from.ObjectMeta) }, func(a, b *NodeInfo) bool {
		return a.Object.UID == b.Object.UID && (a.Object.DeletionTimestamp == nil) == (b.Object.DeletionTimestamp == nil)
	}},
	{"metadata.creationTimestamp", func(to, from *v1.Node) { to.CreationTimestamp = from.CreationTimestamp }, func(a, b *NodeInfo) bool {
		return a.Object.CreationTimestamp.Equal(&b.Object.CreationTimestamp)
	}},
	{"metadata.labels", func(to, from *v1.Node) { to.Labels = from.Labels }, func(a, b *NodeInfo) bool {
		return maps.Equal(a.Object.Labels, b.Object.Labels)
	}},
	{"metadata.annotations", func(to, from *v1.Node) { to.Annotations = ourAnnotations(from.Annotations) }, func(a, b *NodeInfo) bool {
		return sameOurs(a.Object.Annotations, b.Object.Annotations)
	}},
	// Finalizers say why a deleted node is still shown; people read that, no rule does.
	{"metadata.finalizers", func(to, from *v1.Node) { to.Finalizers = from.Finalizers }, nil},
	{"spec.unschedulable", func(to, from *v1.Node) { to.Spec.Unschedulable = from.Spec.Unschedulable }, func(a, b *NodeInfo) bool {
		return a.Object.Spec.Unschedulable == b.Object.Spec.Unschedulable
	}},
	{"spec.providerID", func(to, from *v1.Node) { to.Spec.ProviderID = from.Spec.ProviderID }, func(a, b *NodeInfo) bool {
		return a.Object.Spec.ProviderID == b.Object.Spec.ProviderID
	}},
	{"spec.taints", func(to, from *v1.Node) { to.Spec.Taints = trimTaints(from.Spec.Taints) }, sameTaints},
	{"status.allocatable", func(to, from *v1.Node) { to.Status.Allocatable = from.Status.Allocatable }, func(a, b *NodeInfo) bool {
		return a.AllowedPods == b.AllowedPods && a.Allocatable.Equal(&b.Allocatable)
	}},
	{"status.images", func(to, from *v1.Node) { to.Status.Images = from.Status.Images }, func(a, b *NodeInfo) bool {
		return slices.Equal(a.Images, b.Images)
	}},
	{"status.declaredFeatures", func(to, from *v1.Node) { to.Status.DeclaredFeatures = from.Status.DeclaredFeatures }, func(a, b *NodeInfo) bool {
		return slices.Equal(a.Features, b.Features)
	}},
	{"status.conditions", func(to, from *v1.Node) { to.Status.Conditions = trimReady(from.Status.Conditions) }, func(a, b *NodeInfo) bool {
		return a.Ready() == b.Ready() && sameAnnouncements(a.Object.Status.Conditions, b.Object.Status.Conditions)
	}},
}

// fieldsBesideTaints are the nodeFields but for the taints.
var fieldsBesideTaints = slices.DeleteFunc(slices.Clone(nodeFields), func(f field[v1.Node, *NodeInfo]) bool { return f.path == "spec.taints" })

func trimNode(n *v1.Node) *v1.Node { return trimBy(nodeFields, n) }

// sameNode reports whether no rule and no part of the autoscaler could tell the
// two apart. It doesn't allocate.
func sameNode(a, b *NodeInfo) bool { return a.Group == b.Group && sameBy(nodeFields, a, b) }

// domainsDiffer reports whether the two differ in what decides where a node counts
// in facts: labels, and taints but those of the effect PreferNoSchedule. It
// doesn't allocate.
func domainsDiffer(a, b *NodeInfo) bool {
	return !maps.Equal(a.Object.Labels, b.Object.Labels) || !sameHardTaints(a.Object.Spec.Taints, b.Object.Spec.Taints)
}

// sameHardTaints reports whether two lists of taints have the same ones, in the same
// order, that can keep a pod off a node.
func sameHardTaints(a, b []v1.Taint) bool {
	return sameTaintsBut(a, b, func(t *v1.Taint) bool { return t.Effect == v1.TaintEffectPreferNoSchedule })
}

// sameTaintsBut reports whether two lists of taints have the same ones, in the same order, but for
// those to skip.
func sameTaintsBut(a, b []v1.Taint, skip func(*v1.Taint) bool) bool {
	for {
		for len(a) > 0 && skip(&a[0]) {
			a = a[1:]
		}
		for len(b) > 0 && skip(&b[0]) {
			b = b[1:]
		}
		if len(a) == 0 || len(b) == 0 {
			return len(a) == len(b)
		}
		if !sameTaint(a[0], b[0]) {
			return false
		}
		a, b = a[1:], b[1:]
	}
}

func sameTaints(a, b *NodeInfo) bool {
	return slices.EqualFunc(a.Object.Spec.Taints, b.Object.Spec.Taints, sameTaint)
}

func sameTaint(a, b v1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
}

func trimTaints(in []v1.Taint) []v1.Taint {
	var out []v1.Taint
	for i := range in {
		out = append(out, v1.Taint{Key: in[i].Key, Value: in[i].Value, Effect: in[i].Effect})
	}
	return out
}

// trimReady keeps whether the node is ready, and what somebody else's conditions announce. What the
// kubelet's other conditions keep pods away for comes as taints.
func trimReady(in []v1.NodeCondition) (out []v1.NodeCondition) {
	for i := range in {
		if in[i].Type == v1.NodeReady || announces(&in[i]) {
			out = append(out, v1.NodeCondition{Type: in[i].Type, Status: in[i].Status})
		}
	}
	return out
}

// announces reports whether a condition is True that neither the kubelet nor the cloud's node controller
// sets: it may say that the cloud is about to take the node.
func announces(c *v1.NodeCondition) bool {
	switch c.Type {
	case v1.NodeReady, v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure, v1.NodeNetworkUnavailable:
		return false
	}
	return c.Status == v1.ConditionTrue
}

// sameAnnouncements reports whether two lists have the same announcements, in the same order.
func sameAnnouncements(a, b []v1.NodeCondition) bool {
	for {
		i, j := slices.IndexFunc(a, isAnnouncement), slices.IndexFunc(b, isAnnouncement)
		if i < 0 || j < 0 {
			return i == j
		}
		if a[i].Type != b[j].Type {
			return false
		}
		a, b = a[i+1:], b[j+1:]
	}
}

func isAnnouncement(c v1.NodeCondition) bool { return announces(&c) }
