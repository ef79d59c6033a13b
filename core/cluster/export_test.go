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

// PodRequests returns what a pod requests, with defaults or without.
func PodRequests(s *Schema, p *v1.Pod, defaults v1.ResourceList) v1.ResourceList {
	settled := p.Spec.NodeName == "" || settled(p)
	if defaults == nil {
		return s.podRequests(p, settled)
	}
	return s.requestsWith(p, settled, defaults)
}
