// Package autoscalingapi has CapacityBuffer (v1beta1) and ProvisioningRequest (v1) of the
// API group autoscaling.x-k8s.io, as far as Berth reads and writes them, and the words of
// their conditions. The API is Cluster Autoscaler's; its Go module isn't published, hence
// own types.
package autoscalingapi

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Group is the API group of both kinds.
const Group = "autoscaling.x-k8s.io"

// ActiveCapacity is the provisioning strategy by which nodes are bought for a buffer ahead
// of its pods; the default, and the only one that Berth follows.
const ActiveCapacity = "buffer.x-k8s.io/active-capacity"

// BufferAnnotation names, on a pod, the CapacityBuffer of its namespace whose room it may
// have, where the buffer's template has no labels to tell by.
const BufferAnnotation = "berth.dev/capacity-buffer"

// Types and reasons of a CapacityBuffer's conditions.
const (
	ReadyForProvisioning = "ReadyForProvisioning"
	Provisioning         = "Provisioning"

	AttributesSetReason    = "AttributesSetSuccessfully"
	ErrorReason            = "error"
	InjectedReason         = "FakePodsInjected"
	EmptyReason            = "BufferIsEmpty"
	NotProvisionableReason = "NotReadyForProvisioning"
)

// CapacityBuffer asks for room for so many chunks, each as large as a pod of a template.
type CapacityBuffer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   CapacityBufferSpec   `json:"spec"`
	Status CapacityBufferStatus `json:"status,omitempty"`
}

// DeepCopyObject implements runtime.Object. Lists and maps of the spec and status are shared but for
// amounts, which may be bounded: nobody writes to the rest of an object that others may have.
func (b *CapacityBuffer) DeepCopyObject() runtime.Object {
	out := *b
	out.ObjectMeta = *b.ObjectMeta.DeepCopy()
	out.Spec.Limits = b.Spec.Limits.DeepCopy()
	return &out
}

// LocalObjectRef names an object of the same namespace.
type LocalObjectRef struct {
	Name string `json:"name"`
}

// ScalableRef names an object that has replicas.
type ScalableRef struct {
	APIGroup string `json:"apiGroup,omitempty"`
	Kind     string `json:"kind"`
	Name     string `json:"name"`
}

// CapacityBufferSpec says what a chunk is like, by one of PodTemplateRef and ScalableRef,
// and how many there are: the fewest by Replicas, Percentage (of the scalable's replicas)
// and Limits (that all chunks together keep to), of which at least one is set.
type CapacityBufferSpec struct {
	ProvisioningStrategy *string         `json:"provisioningStrategy,omitempty"`
	PodTemplateRef       *LocalObjectRef `json:"podTemplateRef,omitempty"`
	ScalableRef          *ScalableRef    `json:"scalableRef,omitempty"`
	Replicas             *int32          `json:"replicas,omitempty"`
	Percentage           *int32          `json:"percentage,omitempty"`
	Limits               v1.ResourceList `json:"limits,omitempty"`
}

// Strategy returns the provisioning strategy.
func (s *CapacityBufferSpec) Strategy() string {
	if p := s.ProvisioningStrategy; p != nil && *p != "" {
		return *p
	}
	return ActiveCapacity
}

// CapacityBufferStatus says how a buffer stands. Fields that are nil are removed when it is
// written.
type CapacityBufferStatus struct {
	PodTemplateRef        *LocalObjectRef    `json:"podTemplateRef"`
	Replicas              *int32             `json:"replicas"`
	PodTemplateGeneration *int64             `json:"podTemplateGeneration"`
	Conditions            []metav1.Condition `json:"conditions,omitempty"`
	ProvisioningStrategy  *string            `json:"provisioningStrategy,omitempty"`
}
