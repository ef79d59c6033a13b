package scenario

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/ptr"
)

// This file is device classes and claims as scenarios have them in short: their form, what is wrong
// with them, and the objects that they stand for.

// DeviceClass is a class of devices in short.
type DeviceClass struct {
	// Name of the class.
	Name string `json:"name"`
	// Driver of which the devices are; of any when absent.
	Driver string `json:"driver,omitempty"`
	// Selectors are CEL expressions that must all be true of a device:
	// device.attributes["gpu.example.com"].model == "a100".
	Selectors []string `json:"selectors,omitempty"`
	// ExtendedResourceName is the extended resource that the devices provide on nodes whose
	// allocatable lacks it.
	ExtendedResourceName string `json:"extendedResourceName,omitempty"`
}

// Claim is what each pod of a workload claims, in short.
type Claim struct {
	// Name of the claim in the pods.
	Name string `json:"name"`
	// Shared makes one claim for all pods of a copy. Otherwise each pod has its own, of a
	// ResourceClaimTemplate.
	Shared bool `json:"shared,omitempty"`
	// What is claimed, unless FirstAvailable or Spec say it.
	DeviceRequest `json:",inline"`
	// FirstAvailable are alternatives: the first of them that can be had is taken.
	FirstAvailable []DeviceRequest `json:"firstAvailable,omitempty"`
	// SameAttribute is an attribute whose value all devices of the claim must share, such as
	// gpu.example.com/numa.
	SameAttribute resourcev1.FullyQualifiedName `json:"sameAttribute,omitempty"`
	// Spec is that of the ResourceClaim, in the place of everything but Name and Shared.
	Spec *resourcev1.ResourceClaimSpec `json:"spec,omitempty"`
}

// DeviceRequest asks for devices of a class.
type DeviceRequest struct {
	// Class is the name of a DeviceClass.
	Class string `json:"class,omitempty"`
	// Count of the devices; one when 0.
	Count int64 `json:"count,omitempty"`
	// All asks for every device of the class that a node has, instead of Count.
	All bool `json:"all,omitempty"`
	// Selectors are CEL expressions that must be true of a device, beside those of its class.
	Selectors []string `json:"selectors,omitempty"`
	// Capacity is what is needed of a device: of one that is shared it is taken, and others must have it.
	Capacity map[resourcev1.QualifiedName]resource.Quantity `json:"capacity,omitempty"`
	// Tolerations of the taints of devices.
	Tolerations []resourcev1.DeviceToleration `json:"tolerations,omitempty"`
}

// validate checks the field that a request stands in.
func (r *DeviceRequest) validate(v *validator, at string) {
	v.name(at+".class", r.Class)
	if r.Count < 0 || r.Count > resourcev1.AllocationResultsMaxSize {
		v.bad(at+".count", "is %d; it must be from 0 to %d", r.Count, resourcev1.AllocationResultsMaxSize)
	}
	if r.All && r.Count > 0 {
		v.bad(at+".all", "is true, and count %d; remove one of them", r.Count)
	}
	v.deviceSelectors(at+".selectors", r.Selectors)
	for name, q := range r.Capacity {
		v.quantity(fmt.Sprintf("%s.capacity.%s", at, name), &q)
	}
}

// deviceSelectors checks that CEL expressions can be compiled.
func (v *validator) deviceSelectors(at string, expressions []string) {
	if len(expressions) > resourcev1.DeviceSelectorsMaxSize {
		v.bad(at, "are %d; they must be at most %d", len(expressions), resourcev1.DeviceSelectorsMaxSize)
		return
	}
	for i, text := range expressions {
		if out := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true}).CompileCELExpression(text, cel.Options{}); out.Error != nil {
			v.bad(fmt.Sprintf("%s[%d]", at, i), "is %q; it must be a CEL expression over device: %v", text, out.Error)
		}
	}
}

// deviceClasses checks the classes.
func (v *validator) deviceClasses(sp *Spec) {
	for i := range sp.DeviceClasses {
		c, at := &sp.DeviceClasses[i], fmt.Sprintf("spec.deviceClasses[%d]", i)
		v.name(at+".name", c.Name)
		if slices.ContainsFunc(sp.DeviceClasses[:i], func(x DeviceClass) bool { return x.Name == c.Name }) {
			v.bad(at+".name", "%q is given twice; names must be unique", c.Name)
		}
		if c.Driver != "" {
			v.name(at+".driver", c.Driver)
		}
		v.deviceSelectors(at+".selectors", c.Selectors)
	}
}

// claims checks what the pods of a workload claim; at is the workload's field.
func (v *validator) claims(w *Workload, at string) {
	for i := range w.Claims {
		c, at := &w.Claims[i], fmt.Sprintf("%s.claims[%d]", at, i)
		v.name(at+".name", c.Name)
		if slices.ContainsFunc(w.Claims[:i], func(x Claim) bool { return x.Name == c.Name }) ||
			slices.ContainsFunc(w.Template.Spec.ResourceClaims, func(x v1.PodResourceClaim) bool { return x.Name == c.Name }) {
			v.bad(at+".name", "%q is given twice; names must be unique", c.Name)
		}
		switch {
		case c.Spec != nil && (c.Class != "" || len(c.FirstAvailable) > 0):
			v.bad(at+".spec", "says what is claimed, and so does class or firstAvailable; remove one of them")
		case c.Spec != nil && len(c.Spec.Devices.Requests) == 0:
			v.bad(at+".spec", "has no devices.requests; it needs at least one")
		case c.Spec != nil:
		case len(c.FirstAvailable) > 0 && c.Class != "":
			v.bad(at+".class", "is %q, and there is firstAvailable; remove one of them", c.Class)
		case len(c.FirstAvailable) > resourcev1.FirstAvailableDeviceRequestMaxSize:
			v.bad(at+".firstAvailable", "are %d; they must be at most %d", len(c.FirstAvailable), resourcev1.FirstAvailableDeviceRequestMaxSize)
		case len(c.FirstAvailable) > 0:
			for k := range c.FirstAvailable {
				c.FirstAvailable[k].validate(v, fmt.Sprintf("%s.firstAvailable[%d]", at, k))
			}
		case c.Class == "":
			v.bad(at+".class", "is empty; set class, firstAvailable or spec")
		default:
			c.DeviceRequest.validate(v, at)
		}
	}
}

// selectors returns CEL expressions as objects have them.
func selectors(expressions []string) (out []resourcev1.DeviceSelector) {
	for _, text := range expressions {
		out = append(out, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: text}})
	}
	return out
}

// object returns the class.
func (c *DeviceClass) object() *resourcev1.DeviceClass {
	out := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: c.Name}}
	if c.Driver != "" {
		out.Spec.Selectors = selectors([]string{fmt.Sprintf("device.driver == %q", c.Driver)})
	}
	out.Spec.Selectors = append(out.Spec.Selectors, selectors(c.Selectors)...)
	if c.ExtendedResourceName != "" {
		out.Spec.ExtendedResourceName = &c.ExtendedResourceName
	}
	return out
}

// spec returns what the claim's object asks for.
func (c *Claim) spec() resourcev1.ResourceClaimSpec {
	if c.Spec != nil {
		return *c.Spec.DeepCopy()
	}
	request := resourcev1.DeviceRequest{Name: c.Name}
	for i := range c.FirstAvailable {
		x := c.FirstAvailable[i].exactly()
		request.FirstAvailable = append(request.FirstAvailable, resourcev1.DeviceSubRequest{Name: fmt.Sprintf("choice-%d", i), DeviceClassName: x.DeviceClassName,
			Selectors: x.Selectors, AllocationMode: x.AllocationMode, Count: x.Count, Tolerations: x.Tolerations, Capacity: x.Capacity})
	}
	if len(c.FirstAvailable) == 0 {
		request.Exactly = c.exactly()
	}
	out := resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{request}}}
	if c.SameAttribute != "" {
		out.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: &c.SameAttribute}}
	}
	return out
}

// exactly returns the request as objects have it, with the defaults of the API server.
func (r *DeviceRequest) exactly() *resourcev1.ExactDeviceRequest {
	out := &resourcev1.ExactDeviceRequest{DeviceClassName: r.Class, Selectors: selectors(r.Selectors), Tolerations: r.Tolerations}
	if out.AllocationMode = resourcev1.DeviceAllocationModeAll; !r.All {
		out.AllocationMode, out.Count = resourcev1.DeviceAllocationModeExactCount, max(r.Count, 1)
	}
	if len(r.Capacity) > 0 {
		out.Capacity = &resourcev1.CapacityRequirements{Requests: r.Capacity}
	}
	return out
}

// claimed has the pods of a copy claim what their workload says, and returns the objects that they need for it.
func (w *Workload) claimed(meta metav1.ObjectMeta, pod *v1.PodSpec) (out []runtime.Object) {
	for i := range w.Claims {
		c := &w.Claims[i]
		m := *meta.DeepCopy()
		m.Name += "-" + c.Name
		ref := v1.PodResourceClaim{Name: c.Name}
		if c.Shared {
			ref.ResourceClaimName = ptr.To(m.Name)
			out = append(out, &resourcev1.ResourceClaim{ObjectMeta: m, Spec: c.spec()})
		} else {
			ref.ResourceClaimTemplateName = ptr.To(m.Name)
			out = append(out, &resourcev1.ResourceClaimTemplate{ObjectMeta: m, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: c.spec()}})
		}
		pod.ResourceClaims = append(slices.Clip(pod.ResourceClaims), ref)
	}
	return out
}
