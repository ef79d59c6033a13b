package cluster

import (
	"unsafe"

	v1 "k8s.io/api/core/v1"
)

// EvaluatedFrom and EvaluatedTo are where in a Node lies what is read of every node that is
// evaluated.
const (
	EvaluatedFrom = unsafe.Offsetof(Node{}.Pods) + unsafe.Sizeof(uintptr(0)) // the length of Pods
	EvaluatedTo   = unsafe.Offsetof(Node{}.NodeBasics) + unsafe.Offsetof(NodeBasics{}.hasZone)
)

// PodRequests is podRequests.
func PodRequests(p *v1.Pod, running bool) v1.ResourceList { return podRequests(p, running) }
