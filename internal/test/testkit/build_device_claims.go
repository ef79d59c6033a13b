package testkit

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// This file builds claims for devices, their requests, and what pods say about them. Claims
// are of namespace "default".

// ResourceClaimBuilder builds a ResourceClaim.
type ResourceClaimBuilder struct{ resourcev1.ResourceClaim }

// ResourceClaim starts a claim that isn't allocated, with its requests.
func ResourceClaim(name string, requests ...*RequestBuilder) *ResourceClaimBuilder {
	b := &ResourceClaimBuilder{}
	b.Namespace, b.Name, b.UID, b.ResourceVersion = "default", name, types.UID("devices-default-"+name), "1"
	for _, r := range requests {
		b.Spec.Devices.Requests = append(b.Spec.Devices.Requests, r.DeviceRequest)
	}
	return b
}

// Namespaced sets the namespace.
func (b *ResourceClaimBuilder) Namespaced(ns string) *ResourceClaimBuilder {
	b.Namespace, b.UID = ns, types.UID("devices-"+ns+"-"+b.Name)
	return b
}

// Match requires the devices of some requests, of all by default, to be alike in an
// attribute.
func (b *ResourceClaimBuilder) Match(attribute string, requests ...string) *ResourceClaimBuilder {
	b.Spec.Devices.Constraints = append(b.Spec.Devices.Constraints, resourcev1.DeviceConstraint{
		Requests: requests, MatchAttribute: new(resourcev1.FullyQualifiedName(attribute))})
	return b
}

// Distinct requires the devices of some requests, of all by default, to differ in an
// attribute.
func (b *ResourceClaimBuilder) Distinct(attribute string, requests ...string) *ResourceClaimBuilder {
	b.Spec.Devices.Constraints = append(b.Spec.Devices.Constraints, resourcev1.DeviceConstraint{
		Requests: requests, DistinctAttribute: new(resourcev1.FullyQualifiedName(attribute))})
	return b
}

// MadeFor makes the pod of that name the claim's controller, as a claim that was made of a
// template has it.
func (b *ResourceClaimBuilder) MadeFor(pod string) *ResourceClaimBuilder {
	b.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod, UID: types.UID("pod-" + pod), Controller: new(true)}}
	return b
}

// ForExtended makes the claim the one that a scheduler has made for a pod's extended
// resources.
func (b *ResourceClaimBuilder) ForExtended(pod string) *ResourceClaimBuilder {
	b.MadeFor(pod)
	b.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
	return b
}

// Allocated allocates devices, for use on any node unless a later method says on which.
func (b *ResourceClaimBuilder) Allocated(results ...resourcev1.DeviceRequestAllocationResult) *ResourceClaimBuilder {
	b.Finalizers = []string{resourcev1.Finalizer}
	b.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: results}}
	return b
}

// Allocation returns one allocated device.
func Allocation(request, driver, pool, device string) resourcev1.DeviceRequestAllocationResult {
	return resourcev1.DeviceRequestAllocationResult{Request: request, Driver: driver, Pool: pool, Device: device}
}

// OnNode pins what is allocated to a node.
func (b *ResourceClaimBuilder) OnNode(name string) *ResourceClaimBuilder {
	b.Status.Allocation.NodeSelector = nodesNamed(name)
	return b
}

// In pins what is allocated to nodes whose label has one of the values.
func (b *ResourceClaimBuilder) In(key string, values ...string) *ResourceClaimBuilder {
	b.Status.Allocation.NodeSelector = nodesIn(key, values)
	return b
}

// AllocatedAt sets when the claim was allocated, in seconds since 1970.
func (b *ResourceClaimBuilder) AllocatedAt(at int64) *ResourceClaimBuilder {
	b.Status.Allocation.AllocationTimestamp = &metav1.Time{Time: time.Unix(at, 0)}
	return b
}

// Condition sets a condition of an allocated device.
func (b *ResourceClaimBuilder) Condition(device resourcev1.DeviceRequestAllocationResult, condition string, status metav1.ConditionStatus) *ResourceClaimBuilder {
	c := metav1.Condition{Type: condition, Status: status, Reason: "Test", LastTransitionTime: metav1.Unix(1, 0)}
	for i := range b.Status.Devices {
		if d := &b.Status.Devices[i]; d.Driver == device.Driver && d.Pool == device.Pool && d.Device == device.Device && equal(d.ShareID, (*string)(device.ShareID)) {
			d.Conditions = append(d.Conditions, c)
			return b
		}
	}
	b.Status.Devices = append(b.Status.Devices, resourcev1.AllocatedDeviceStatus{
		Driver: device.Driver, Pool: device.Pool, Device: device.Device, ShareID: (*string)(device.ShareID), Conditions: []metav1.Condition{c}})
	return b
}

// equal reports whether two values, of which there may be none, are equal.
func equal(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// ReservedFor adds pods that may use the claim.
func (b *ResourceClaimBuilder) ReservedFor(pods ...string) *ResourceClaimBuilder {
	for _, p := range pods {
		b.Status.ReservedFor = append(b.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: p, UID: types.UID("pod-" + p)})
	}
	return b
}

// Full reserves the claim for as many pods as may use one.
func (b *ResourceClaimBuilder) Full() *ResourceClaimBuilder {
	for i := len(b.Status.ReservedFor); i < resourcev1.ResourceClaimReservedForMaxSize; i++ {
		b.ReservedFor(fmt.Sprint("user", i))
	}
	return b
}

// Terminating marks the claim as being deleted.
func (b *ResourceClaimBuilder) Terminating() *ResourceClaimBuilder {
	b.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	return b
}

// With changes the object by a function, where no method does.
func (b *ResourceClaimBuilder) With(change func(*resourcev1.ResourceClaim)) *ResourceClaimBuilder {
	change(&b.ResourceClaim)
	return b
}

// Obj returns the claim.
func (b *ResourceClaimBuilder) Obj() *resourcev1.ResourceClaim { return &b.ResourceClaim }

// RequestBuilder builds a request of a claim: either for devices of one class, or for the
// first of alternatives that is available.
type RequestBuilder struct{ resourcev1.DeviceRequest }

// Request starts a request for one device of a class.
func Request(name, class string) *RequestBuilder {
	return &RequestBuilder{resourcev1.DeviceRequest{Name: name, Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}
}

// FirstAvailable returns a request for the first of others that is available. They become
// its subrequests.
func FirstAvailable(name string, of ...*RequestBuilder) *RequestBuilder {
	b := &RequestBuilder{resourcev1.DeviceRequest{Name: name}}
	for _, r := range of {
		x := r.Exactly
		b.DeviceRequest.FirstAvailable = append(b.DeviceRequest.FirstAvailable, resourcev1.DeviceSubRequest{Name: r.Name, DeviceClassName: x.DeviceClassName,
			Selectors: x.Selectors, AllocationMode: x.AllocationMode, Count: x.Count, Tolerations: x.Tolerations, Capacity: x.Capacity})
	}
	return b
}

// Count sets how many devices are requested.
func (b *RequestBuilder) Count(n int64) *RequestBuilder { b.Exactly.Count = n; return b }

// All requests all devices that match.
func (b *RequestBuilder) All() *RequestBuilder {
	b.Exactly.AllocationMode, b.Exactly.Count = resourcev1.DeviceAllocationModeAll, 0
	return b
}

// Admin requests access beside the users of a device.
func (b *RequestBuilder) Admin() *RequestBuilder { b.Exactly.AdminAccess = new(true); return b }

// Where adds CEL expressions that devices must match.
func (b *RequestBuilder) Where(expressions ...string) *RequestBuilder {
	b.Exactly.Selectors = append(b.Exactly.Selectors, selectors(expressions)...)
	return b
}

// Tolerate adds a toleration of all taints with a key.
func (b *RequestBuilder) Tolerate(key string) *RequestBuilder {
	return b.Toleration(resourcev1.DeviceToleration{Key: key, Operator: resourcev1.DeviceTolerationOpExists})
}

// Toleration adds a toleration.
func (b *RequestBuilder) Toleration(t resourcev1.DeviceToleration) *RequestBuilder {
	b.Exactly.Tolerations = append(b.Exactly.Tolerations, t)
	return b
}

// Capacity sets what is requested of each device's capacities, given as name, quantity pairs.
func (b *RequestBuilder) Capacity(pairs ...string) *RequestBuilder {
	b.Exactly.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{}}
	for i := 0; i < len(pairs); i += 2 {
		b.Exactly.Capacity.Requests[resourcev1.QualifiedName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return b
}

// ResourceClaimTemplate returns a template of claims with the spec of a claim, in its
// namespace.
func ResourceClaimTemplate(name string, claim *ResourceClaimBuilder) *resourcev1.ResourceClaimTemplate {
	t := &resourcev1.ResourceClaimTemplate{Spec: resourcev1.ResourceClaimTemplateSpec{Spec: claim.Spec}}
	t.Namespace, t.Name = claim.Namespace, name
	return t
}

// Claims makes the pod use claims for devices, by their names.
func (b *PodBuilder) Claims(names ...string) *PodBuilder {
	for _, name := range names {
		b.Spec.ResourceClaims = append(b.Spec.ResourceClaims, v1.PodResourceClaim{Name: name, ResourceClaimName: new(name)})
	}
	return b
}

// TemplateClaim makes the pod use a claim that is made of a template. The claim is the one of that
// name; "" says that it hasn't been made yet.
func (b *PodBuilder) TemplateClaim(template, claim string) *PodBuilder {
	b.Spec.ResourceClaims = append(b.Spec.ResourceClaims, v1.PodResourceClaim{Name: template, ResourceClaimTemplateName: new(template)})
	if claim != "" {
		b.Status.ResourceClaimStatuses = append(b.Status.ResourceClaimStatuses, v1.PodResourceClaimStatus{Name: template, ResourceClaimName: &claim})
	}
	return b
}
