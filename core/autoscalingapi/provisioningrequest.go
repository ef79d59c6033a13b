package autoscalingapi

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Provisioning classes that Berth serves.
const (
	// CheckCapacity asks whether all pods fit on the nodes that there are.
	CheckCapacity = "check-capacity.autoscaling.x-k8s.io"
	// BestEffortAtomic asks for nodes for all pods, or for none.
	BestEffortAtomic = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
)

// Annotations by which a pod says which ProvisioningRequest of its namespace it consumes;
// the second is the older one.
const (
	ConsumeAnnotation    = "autoscaling.x-k8s.io/consume-provisioning-request"
	OldConsumeAnnotation = "cluster-autoscaler.kubernetes.io/consume-provisioning-request"
)

// ClassAnnotation says on such a pod which provisioning class the request has.
const ClassAnnotation = "autoscaling.x-k8s.io/provisioning-class-name"

// NoRetry is the parameter by which a check-capacity request fails for good ("true") when
// there is no room at the first attempt.
const NoRetry = "noRetry"

// ValidUntilSeconds is the parameter that says for how long after its creation an atomic
// request is retried.
const ValidUntilSeconds = "ValidUntilSeconds"

// Types of a ProvisioningRequest's conditions, with their reasons and messages. People and
// Kueue read them: they are Cluster Autoscaler's.
const (
	Accepted       = "Accepted"
	Provisioned    = "Provisioned"
	Failed         = "Failed"
	BookingExpired = "BookingExpired"

	AcceptedReason              = "Accepted"
	CapacityIsFoundReason       = "CapacityIsFound"
	CapacityIsNotFoundReason    = "CapacityIsNotFound"
	CapacityIsProvisionedReason = "CapacityIsProvisioned"
	FailedToCreatePodsReason    = "FailedToCreatePods"
	ReservationExpiredReason    = "CapacityReservationTimeExpired"
	ExpiredReason               = "Expired"
)

// ProvisioningRequest asks for room for some sets of pods.
type ProvisioningRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ProvisioningRequestSpec   `json:"spec"`
	Status ProvisioningRequestStatus `json:"status,omitempty"`
}

// DeepCopyObject implements runtime.Object, as CapacityBuffer.DeepCopyObject.
func (r *ProvisioningRequest) DeepCopyObject() runtime.Object {
	out := *r
	out.ObjectMeta = *r.ObjectMeta.DeepCopy()
	return &out
}

// ProvisioningRequestSpec says for which pods, and how.
type ProvisioningRequestSpec struct {
	PodSets               []PodSet          `json:"podSets"`
	ProvisioningClassName string            `json:"provisioningClassName"`
	Parameters            map[string]string `json:"parameters,omitempty"`
}

// PodSet is Count pods of a PodTemplate.
type PodSet struct {
	PodTemplateRef LocalObjectRef `json:"podTemplateRef"`
	Count          int32          `json:"count"`
}

// ProvisioningRequestStatus says how a request stands.
type ProvisioningRequestStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
