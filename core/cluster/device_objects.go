package cluster

import (
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/berthproject/berth/core/devices"
)

// deviceClassKind: a device class may name an extended resource that its devices provide where a
// node's allocatable lacks that resource (KEP-5004), and says which devices are its own. A local rule
// may read any class, for a pod that requests its resource. Parameters are the driver's.
var deviceClassKind = kindOf[*resourcev1.DeviceClass]{
	new: func() *resourcev1.DeviceClass { return &resourcev1.DeviceClass{} },
	reads: func(o *resourcev1.DeviceClass) *resourcev1.DeviceClass {
		meta := trimMeta(&o.ObjectMeta)
		meta.CreationTimestamp = o.CreationTimestamp
		return &resourcev1.DeviceClass{ObjectMeta: meta, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: o.Spec.ExtendedResourceName, Selectors: o.Spec.Selectors}}
	},
	lookUp: func(b *objects, o *resourcev1.DeviceClass, sign int) {
		b.classes += sign
		if name := o.Spec.ExtendedResourceName; name != nil {
			enlist(b.deviceClasses, v1.ResourceName(*name), o, sign)
		}
	},
	everywhere: true,
}

// TakesObjects reports whether a pod may take something of the cluster's objects when it gets a node: it
// has volumes with claims, or claims devices. Then the next pod of its class may not be of that any more.
func (s *State) TakesObjects(pod *Pod) bool { return len(pod.Claims) > 0 || s.ClaimsDevices(pod) }

// ClaimsDevices reports whether a pod has resource claims, or requests an extended resource that a
// device class may back.
func (s *State) ClaimsDevices(pod *Pod) bool {
	if len(pod.Object.Spec.ResourceClaims) > 0 {
		return true
	}
	if s.objects.classes == 0 {
		return false
	}
	for id := range pod.Request.All() {
		if id.Scalar() && s.DeviceClassOf(id.Name()) != nil {
			return true
		}
	}
	return false
}

// AnyDeviceClass reports whether there is a device class: without one no pod gets devices.
func (s *State) AnyDeviceClass() bool { return s.objects.classes > 0 }

// DeviceClassOf returns the device class that backs an extended resource: the one of which the
// resource has the implicit name (deviceclass.resource.kubernetes.io/CLASS), or of those that name the
// resource the newest, and the first by name of these (ExtendedResourceCache of
// k8s.io/dynamic-resource-allocation). It returns nil when there is none. It doesn't allocate.
func (s *State) DeviceClassOf(resource v1.ResourceName) *resourcev1.DeviceClass {
	if class, ok := strings.CutPrefix(string(resource), resourcev1.ResourceDeviceClassPrefix); ok {
		return find[*resourcev1.DeviceClass](s, DeviceClassKind, "", class)
	}
	var newest *resourcev1.DeviceClass
	for _, c := range s.objects.deviceClasses[resource] {
		if newest == nil || newest.CreationTimestamp.Before(&c.CreationTimestamp) {
			newest = c
		}
	}
	return newest
}

// AmountOf returns how much a node has of a resource: what its allocatable says, and of an extended
// resource that isn't there and that a device class backs, how many devices of the class it has, taken or
// not.
func (s *State) AmountOf(n *Node, id ResourceID) int64 {
	amount := n.Allocatable.At(id)
	if amount == 0 && s.objects.classes > 0 && id.Scalar() {
		if class := s.DeviceClassOf(id.Name()); class != nil {
			return s.objects.devices.CountOn(int32(n.Index), n.Object, class)
		}
	}
	return amount
}

// resourceSliceKind: a slice publishes devices of a pool. Rules read what the allocator makes of it
// (Devices), on the nodes for which that changes.
var resourceSliceKind = kindOf[*resourcev1.ResourceSlice]{
	new: func() *resourcev1.ResourceSlice { return &resourcev1.ResourceSlice{} },
	reads: func(o *resourcev1.ResourceSlice) *resourcev1.ResourceSlice {
		return &resourcev1.ResourceSlice{ObjectMeta: trimMeta(&o.ObjectMeta), Spec: o.Spec}
	},
	lookUp: func(b *objects, o *resourcev1.ResourceSlice, sign int) {
		if sign > 0 {
			b.devices.SetSlice(o, nil)
		} else {
			b.devices.SetSlice(nil, o)
		}
	},
}

// resourceClaimKind: a claim asks for devices, and says which ones it got. What is taken of a pool
// follows from all claims; what a claim asks for is signed of the pods that use it. Claims are written
// back whole, with what is allocated; a recording lacks the parameters of drivers.
var resourceClaimKind = kindOf[*resourcev1.ResourceClaim]{
	new: func() *resourcev1.ResourceClaim { return &resourcev1.ResourceClaim{} },
	reads: func(o *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
		out := &resourcev1.ResourceClaim{ObjectMeta: trimMeta(&o.ObjectMeta)}
		out.OwnerReferences = controller(o.OwnerReferences)
		out.Annotations = annotated(o.Annotations, resourcev1.ExtendedResourceClaimAnnotation, AnnBindingTimedOut)
		out.Spec.Devices.Requests, out.Spec.Devices.Constraints = o.Spec.Devices.Requests, o.Spec.Devices.Constraints
		out.Status.ReservedFor = o.Status.ReservedFor
		if a := o.Status.Allocation; a != nil {
			out.Status.Allocation = &resourcev1.AllocationResult{NodeSelector: a.NodeSelector, AllocationTimestamp: a.AllocationTimestamp}
			out.Status.Allocation.Devices.Results = a.Devices.Results
		}
		for i := range o.Status.Devices {
			d := &o.Status.Devices[i]
			out.Status.Devices = append(out.Status.Devices, resourcev1.AllocatedDeviceStatus{Driver: d.Driver, Pool: d.Pool, Device: d.Device,
				ShareID: d.ShareID, Conditions: d.Conditions})
		}
		return out
	},
	lookUp: func(b *objects, o *resourcev1.ResourceClaim, sign int) {
		if owner := extendedFor(o); owner != "" {
			enlist(b.extendedClaims, owner, o, sign)
		}
		if sign > 0 {
			b.devices.SetClaim(o, nil)
		} else {
			b.devices.SetClaim(nil, o)
		}
	},
	local: func(s *State, o *resourcev1.ResourceClaim, touch func(NodeIndex)) {
		for _, r := range o.Status.ReservedFor { // whether devices are free without one of the pods depends on the others
			if i, ok := s.Placed(r.UID); ok && i != NoNode {
				touch(i)
			}
		}
		s.touchAwaiting(o, touch)
	},
	differ: func(a, b *resourcev1.ResourceClaim) bool {
		x, y := a.Status.Allocation, b.Status.Allocation
		return len(a.Status.ReservedFor) != len(b.Status.ReservedFor) || (x == nil) != (y == nil) ||
			x != nil && len(x.Devices.Results) != len(y.Devices.Results)
	},
}

// touchAwaiting touches the nodes to which pods are nominated that a claim is of: what they keep of the devices there
// follows from it, and nodes have to take others beside them. It costs O(nominations) when there are such pods.
func (s *State) touchAwaiting(o *resourcev1.ResourceClaim, touch func(NodeIndex)) {
	if owner := extendedFor(o); owner != "" {
		if n := s.nominated.byPod[owner]; n != nil && n.Node != NoNode {
			touch(n.Node)
		}
	}
	key := ClaimKey{o.Namespace, o.Name}
	if s.nominated.deviceClaims[key] == 0 {
		return
	}
	for _, n := range s.nominated.nodes {
		for _, p := range s.nodes[n].Nominated {
			eachDeviceClaim(p, func(c ClaimKey) {
				if c == key {
					touch(n)
				}
			})
		}
	}
}

// eachDeviceClaim calls f with each resource claim that a pod names.
func eachDeviceClaim(p *Pod, f func(ClaimKey)) {
	for i := range p.Object.Spec.ResourceClaims {
		if name, _, err := resourceclaim.Name(p.Object, &p.Object.Spec.ResourceClaims[i]); err == nil && name != nil {
			f(ClaimKey{p.Object.Namespace, *name})
		}
	}
}

// ClaimsAwaited reports whether a pod that is nominated to a node has a claim of a pod, for volumes or for devices.
func (s *State) ClaimsAwaited(p *Pod) (awaited bool) {
	for _, c := range p.Claims {
		awaited = awaited || s.nominated.users[ClaimKey{p.Object.Namespace, c.Name}] > 0
	}
	eachDeviceClaim(p, func(c ClaimKey) { awaited = awaited || s.nominated.deviceClaims[c] > 0 })
	return awaited
}

// AnnBindingTimedOut is on a claim in the state, and never in the API: its devices' binding conditions
// have taken too long.
const AnnBindingTimedOut = "berth.dev/binding-timed-out"

// BindingDeadline returns until when the devices of a claim may become ready, if they have binding
// conditions and it is known since when the claim has them (isClaimTimeout of kube-scheduler).
func BindingDeadline(c *resourcev1.ResourceClaim, timeout time.Duration) (deadline time.Time, ok bool) {
	a := c.Status.Allocation
	if a == nil || a.AllocationTimestamp == nil ||
		!slices.ContainsFunc(a.Devices.Results, func(r resourcev1.DeviceRequestAllocationResult) bool { return r.BindingConditions != nil }) {
		return time.Time{}, false
	}
	return a.AllocationTimestamp.Add(timeout), true
}

// MarkBindingTimedOut returns a claim that says whether its binding conditions have taken too long: c
// itself when it does so already.
func MarkBindingTimedOut(c *resourcev1.ResourceClaim, late bool) *resourcev1.ResourceClaim {
	if _, says := c.Annotations[AnnBindingTimedOut]; says == late {
		return c
	}
	out := *c
	out.Annotations = maps.Clone(c.Annotations)
	if late {
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, AnnBindingTimedOut, "true")
	} else {
		delete(out.Annotations, AnnBindingTimedOut)
	}
	return &out
}

// extendedFor returns the UID of the pod for whose extended resources a claim was made, "" for none
// (KEP-5004).
func extendedFor(o *resourcev1.ResourceClaim) types.UID {
	if o.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "true" {
		return ""
	}
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
		return ref.UID
	}
	return ""
}

// deviceTaintRuleKind: a rule adds a taint to devices, wherever they are published. Kubernetes 1.36
// knows none with its gates as they are by default.
var deviceTaintRuleKind = kindOf[*resourcev1.DeviceTaintRule]{
	new: func() *resourcev1.DeviceTaintRule { return &resourcev1.DeviceTaintRule{} },
	reads: func(o *resourcev1.DeviceTaintRule) *resourcev1.DeviceTaintRule {
		return &resourcev1.DeviceTaintRule{ObjectMeta: trimMeta(&o.ObjectMeta), Spec: o.Spec}
	},
	lookUp: func(b *objects, o *resourcev1.DeviceTaintRule, sign int) {
		switch {
		case !b.taintRules:
		case sign > 0:
			b.devices.SetRule(o, nil)
		default:
			b.devices.SetRule(nil, o)
		}
	},
}

// DeviceClass returns a device class, or nil.
func (s *State) DeviceClass(name string) *resourcev1.DeviceClass {
	return find[*resourcev1.DeviceClass](s, DeviceClassKind, "", name)
}

// ResourceSlice returns a resource slice, or nil.
func (s *State) ResourceSlice(name string) *resourcev1.ResourceSlice {
	return find[*resourcev1.ResourceSlice](s, ResourceSliceKind, "", name)
}

// ResourceClaim returns a resource claim, or nil.
func (s *State) ResourceClaim(namespace, name string) *resourcev1.ResourceClaim {
	return find[*resourcev1.ResourceClaim](s, ResourceClaimKind, namespace, name)
}

// ClaimNamedBy returns the resource claim that a pod names: of the state, or what a stand-in brings (Pod.Devices); nil
// when there is none.
func (s *State) ClaimNamedBy(pod *Pod, name string) *resourcev1.ResourceClaim {
	if c := s.ResourceClaim(pod.Object.Namespace, name); c != nil {
		return c
	}
	for _, c := range pod.Devices {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// ClaimsOf returns the resource claims that a pod names, in its order, and then the one that was made
// for its extended resources. Those that don't exist are left out.
func (s *State) ClaimsOf(pod *Pod) (out []*resourcev1.ResourceClaim) {
	for i := range pod.Object.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod.Object, &pod.Object.Spec.ResourceClaims[i])
		if err != nil || name == nil {
			continue
		}
		if c := s.ResourceClaim(pod.Object.Namespace, *name); c != nil && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	if c := s.ExtendedResourceClaim(pod); c != nil {
		out = append(out, c)
	}
	return out
}

// ExtendedResourceClaim returns the claim that was made for a pod's extended resources, or nil.
func (s *State) ExtendedResourceClaim(pod *Pod) *resourcev1.ResourceClaim {
	for _, c := range s.objects.extendedClaims[pod.UID] {
		if metav1.GetControllerOfNoCopy(c).Name == pod.Object.Name {
			return c
		}
	}
	return nil
}

// Devices returns the devices of the cluster, and what of them is taken. The caller only asks.
func (s *State) Devices() *devices.Inventory { return s.objects.devices }

// DeviceNode implements devices.Nodes.
func (s *State) DeviceNode(name string) (int32, *v1.Node) {
	if n := s.NodeByName(name); n != nil {
		return int32(n.Index), n.Object
	}
	return int32(NoNode), nil
}

// DeviceNodes implements devices.Nodes.
func (s *State) DeviceNodes(f func(int32, *v1.Node)) {
	s.Nodes(func(n *Node) { f(int32(n.Index), n.Object) })
}

// deviceClasses implements devices.Classes.
type deviceClasses struct{ *State }

// List implements devices.Classes.
func (c deviceClasses) List() (out []*resourcev1.DeviceClass, err error) {
	for _, o := range c.Objects() {
		if class, ok := o.(*resourcev1.DeviceClass); ok {
			out = append(out, class)
		}
	}
	return out, nil
}

// Get implements devices.Classes.
func (c deviceClasses) Get(name string) (*resourcev1.DeviceClass, error) {
	if class := c.DeviceClass(name); class != nil {
		return class, nil
	}
	return nil, apierrors.NewNotFound(resourcev1.Resource("deviceclass"), name)
}

// DeviceClasses returns the device classes for the allocator.
func (s *State) DeviceClasses() devices.Classes { return deviceClasses{s} }
