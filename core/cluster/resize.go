package cluster

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

// This file reads what a kubelet says of a resize in place that it has not begun (the condition
// PodResizePending), and works out what the node lacks for it. A deferred resize counts as its spec
// requests (requests.go), so the node may be over its capacity by it; an infeasible one doesn't count.

// ResizeReason is why a kubelet has not begun a resize.
type ResizeReason string

// The reasons, as words of a sentence.
const (
	ResizeDeferred   ResizeReason = "deferred"   // the node has too little room now
	ResizeInfeasible ResizeReason = "infeasible" // it can't be carried out on this node
)

// PendingResize returns why the resize of a pod is pending, "" when none is.
func PendingResize(p *v1.Pod) ResizeReason {
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		if c.Type != v1.PodResizePending || c.Status != v1.ConditionTrue || p.Spec.NodeName == "" {
			continue
		}
		if c.Reason == v1.PodReasonInfeasible {
			return ResizeInfeasible
		}
		return ResizeDeferred // the kubelet calls all else so
	}
	return ""
}

// samePendingResize reports whether the resizes of two versions of a pod are pending alike. Of an infeasible one
// what is wanted isn't in the pod's request.
func samePendingResize(a, b *v1.Pod) bool {
	if PendingResize(a) != PendingResize(b) {
		return false
	}
	return PendingResize(a) != ResizeInfeasible || equality.Semantic.DeepEqual(a.Spec.Resources, b.Spec.Resources) &&
		slices.EqualFunc(a.Spec.Containers, b.Spec.Containers, sameResources) && slices.EqualFunc(a.Spec.InitContainers, b.Spec.InitContainers, sameResources)
}

func sameResources(a, b v1.Container) bool {
	return equality.Semantic.DeepEqual(a.Resources, b.Resources)
}

// AsWanted returns a pod that requests what its spec does, the pod itself unless its resize is
// infeasible.
func (s *Schema) AsWanted(p *Pod) *Pod {
	if PendingResize(p.Object) != ResizeInfeasible {
		return p
	}
	object := *p.Object
	object.Spec.NodeName = ""
	parsed, out := s.ParsePod(&object), *p
	out.Request, out.NonZero, out.Scored = parsed.Request, parsed.NonZero, parsed.Scored
	return &out
}

// ResizeLack says, for people, what a node lacks for the resize of a pod on it.
func ResizeLack(s *State, p *Pod, n *Node) string {
	wanted := s.Schema.AsWanted(p).Request
	var never, lacks []string
	for id, want := range wanted.All() {
		switch over := n.Requested.At(id) - p.Request.At(id) + want - n.Allocatable.At(id); {
		case want <= p.Request.At(id) && PendingResize(p.Object) == ResizeInfeasible:
		case want > n.Allocatable.At(id):
			never = append(never, fmt.Sprintf("%s %s", amountText(id, want), id.Name()))
		case over > 0:
			lacks = append(lacks, fmt.Sprintf("%s %s", amountText(id, over), id.Name()))
		}
	}
	switch {
	case len(never) > 0:
		return fmt.Sprintf("node %s is too small: it never has %s for one pod", n.Name, strings.Join(never, " and "))
	case len(lacks) > 0:
		return fmt.Sprintf("node %s lacks %s", n.Name, strings.Join(lacks, " and "))
	case PendingResize(p.Object) == ResizeInfeasible:
		return fmt.Sprintf("the kubelet of node %s can't carry it out", n.Name)
	}
	return fmt.Sprintf("node %s has room for it now, as far as requests tell; its kubelet tries again", n.Name)
}

// amountText returns an amount of a resource as people write it.
func amountText(id ResourceID, n int64) string {
	switch id {
	case CPU:
		return resource.NewMilliQuantity(n, resource.DecimalSI).String()
	case Memory:
		return resource.NewQuantity(n, resource.BinarySI).String()
	}
	return fmt.Sprint(n)
}
