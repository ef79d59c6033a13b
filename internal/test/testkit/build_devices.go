package testkit

import (
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file builds what drivers and administrators publish about devices: slices of pools,
// device classes and taint rules. Claims for devices are in build_device_claims.go.

// ResourceSliceBuilder builds a ResourceSlice.
type ResourceSliceBuilder struct{ resourcev1.ResourceSlice }

// ResourceSlice starts the only slice of the first generation of a driver's pool. It
// belongs to no node until a method says so.
func ResourceSlice(name, driver, pool string) *ResourceSliceBuilder {
	b := &ResourceSliceBuilder{}
	b.Name = name
	b.Spec.Driver = driver
	b.Spec.Pool = resourcev1.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: 1}
	return b
}

// NodeSlice starts the only slice of a driver's pool of a node's own devices, which has the
// node's name.
func NodeSlice(driver, node string) *ResourceSliceBuilder {
	return ResourceSlice(node+"-"+driver, driver, node).OnNode(node)
}

// Generation sets the generation of the pool.
func (b *ResourceSliceBuilder) Generation(g int64) *ResourceSliceBuilder {
	b.Spec.Pool.Generation = g
	return b
}

// Of sets how many slices the pool has.
func (b *ResourceSliceBuilder) Of(slices int64) *ResourceSliceBuilder {
	b.Spec.Pool.ResourceSliceCount = slices
	return b
}

// OnNode makes the devices those of a node.
func (b *ResourceSliceBuilder) OnNode(name string) *ResourceSliceBuilder {
	b.Spec.NodeName = &name
	return b
}

// In makes the devices usable from nodes whose label has one of the values.
func (b *ResourceSliceBuilder) In(key string, values ...string) *ResourceSliceBuilder {
	b.Spec.NodeSelector = nodesIn(key, values)
	return b
}

// Everywhere makes the devices usable from all nodes.
func (b *ResourceSliceBuilder) Everywhere() *ResourceSliceBuilder {
	b.Spec.AllNodes = new(true)
	return b
}

// PerDevice leaves it to each device from which nodes it is usable.
func (b *ResourceSliceBuilder) PerDevice() *ResourceSliceBuilder {
	b.Spec.PerDeviceNodeSelection = new(true)
	return b
}

// Devices adds devices.
func (b *ResourceSliceBuilder) Devices(devices ...*DeviceBuilder) *ResourceSliceBuilder {
	for _, d := range devices {
		b.Spec.Devices = append(b.Spec.Devices, d.Device)
	}
	return b
}

// Counters adds a set of counters that devices of the pool consume, given as name, quantity
// pairs. A slice with counters has no devices.
func (b *ResourceSliceBuilder) Counters(set string, pairs ...string) *ResourceSliceBuilder {
	b.Spec.SharedCounters = append(b.Spec.SharedCounters, resourcev1.CounterSet{Name: set, Counters: counters(pairs)})
	return b
}

// With changes the object by a function, where no method does.
func (b *ResourceSliceBuilder) With(change func(*resourcev1.ResourceSlice)) *ResourceSliceBuilder {
	change(&b.ResourceSlice)
	return b
}

// Obj returns the slice.
func (b *ResourceSliceBuilder) Obj() *resourcev1.ResourceSlice { return &b.ResourceSlice }

// DeviceBuilder builds a device of a slice.
type DeviceBuilder struct{ resourcev1.Device }

// Device starts a device without attributes.
func Device(name string) *DeviceBuilder { return &DeviceBuilder{resourcev1.Device{Name: name}} }

// NamedDevices returns plain devices.
func NamedDevices(names ...string) (out []*DeviceBuilder) {
	for _, name := range names {
		out = append(out, Device(name))
	}
	return out
}

// Version is the value of an attribute that is a semantic version.
type Version string

// Attr sets an attribute to an int, a bool, a string or a Version. A name without a domain
// is of the driver's.
func (b *DeviceBuilder) Attr(name string, value any) *DeviceBuilder {
	if b.Attributes == nil {
		b.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}
	}
	a := resourcev1.DeviceAttribute{}
	switch x := value.(type) {
	case int:
		a.IntValue = new(int64(x))
	case bool:
		a.BoolValue = &x
	case string:
		a.StringValue = &x
	case Version:
		a.VersionValue = new(string(x))
	default:
		panic("an attribute is an int, a bool, a string or a Version")
	}
	b.Attributes[resourcev1.QualifiedName(name)] = a
	return b
}

// Capacity sets capacities, given as name, quantity pairs.
func (b *DeviceBuilder) Capacity(pairs ...string) *DeviceBuilder {
	for i := 0; i < len(pairs); i += 2 {
		b.capacity(pairs[i], resourcev1.DeviceCapacity{Value: resource.MustParse(pairs[i+1])})
	}
	return b
}

func (b *DeviceBuilder) capacity(name string, c resourcev1.DeviceCapacity) {
	if b.Device.Capacity == nil {
		b.Device.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{}
	}
	b.Device.Capacity[resourcev1.QualifiedName(name)] = c
}

// Shared lets the device be allocated several times, each consuming of its capacities.
func (b *DeviceBuilder) Shared() *DeviceBuilder {
	b.AllowMultipleAllocations = new(true)
	return b
}

// Valued sets a capacity of which an allocation consumes one of the valid quantities, the
// first unless it asks for more.
func (b *DeviceBuilder) Valued(name, quantity string, valid ...string) *DeviceBuilder {
	p := &resourcev1.CapacityRequestPolicy{Default: new(resource.MustParse(valid[0]))}
	for _, q := range valid {
		p.ValidValues = append(p.ValidValues, resource.MustParse(q))
	}
	b.capacity(name, resourcev1.DeviceCapacity{Value: resource.MustParse(quantity), RequestPolicy: p})
	return b
}

// Ranged sets a capacity of which an allocation consumes at least the minimum, in steps.
func (b *DeviceBuilder) Ranged(name, quantity, minimum, step string) *DeviceBuilder {
	r := &resourcev1.CapacityRequestPolicyRange{Min: new(resource.MustParse(minimum)), Step: new(resource.MustParse(step))}
	p := &resourcev1.CapacityRequestPolicy{Default: new(resource.MustParse(minimum)), ValidRange: r}
	b.capacity(name, resourcev1.DeviceCapacity{Value: resource.MustParse(quantity), RequestPolicy: p})
	return b
}

// Consumes makes the device consume counters of a set of its pool, given as name, quantity
// pairs.
func (b *DeviceBuilder) Consumes(set string, pairs ...string) *DeviceBuilder {
	b.ConsumesCounters = append(b.ConsumesCounters, resourcev1.DeviceCounterConsumption{CounterSet: set, Counters: counters(pairs)})
	return b
}

// Taint adds a taint.
func (b *DeviceBuilder) Taint(key, value string, effect resourcev1.DeviceTaintEffect) *DeviceBuilder {
	b.Taints = append(b.Taints, resourcev1.DeviceTaint{Key: key, Value: value, Effect: effect})
	return b
}

// BindsWhen makes pods wait, once the device is allocated, for a condition in the claim's
// status; failed is the condition that ends the wait.
func (b *DeviceBuilder) BindsWhen(ready, failed string) *DeviceBuilder {
	b.BindingConditions = append(b.BindingConditions, ready)
	b.BindingFailureConditions = append(b.BindingFailureConditions, failed)
	return b
}

// OnNode makes the device a node's, in a slice that leaves this to devices.
func (b *DeviceBuilder) OnNode(name string) *DeviceBuilder { b.NodeName = &name; return b }

// In makes the device usable from nodes whose label has one of the values, in a slice that
// leaves this to devices.
func (b *DeviceBuilder) In(key string, values ...string) *DeviceBuilder {
	b.NodeSelector = nodesIn(key, values)
	return b
}

// Everywhere makes the device usable from all nodes, in a slice that leaves this to devices.
func (b *DeviceBuilder) Everywhere() *DeviceBuilder { b.AllNodes = new(true); return b }

// With changes the device by a function, where no method does.
func (b *DeviceBuilder) With(change func(*resourcev1.Device)) *DeviceBuilder {
	change(&b.Device)
	return b
}

// DeviceClass returns a DeviceClass of the devices that match all CEL expressions. It backs
// an extended resource, "" for none but that of its implicit name.
func DeviceClass(name, resource string, expressions ...string) *resourcev1.DeviceClass {
	c := &resourcev1.DeviceClass{}
	if c.Name = name; resource != "" {
		c.Spec.ExtendedResourceName = &resource
	}
	c.Spec.Selectors = selectors(expressions)
	return c
}

// DeviceTaintRule returns a rule that taints the devices of a driver, pool and name, where
// "" stands for any.
func DeviceTaintRule(name, driver, pool, device, key string, effect resourcev1.DeviceTaintEffect) *resourcev1.DeviceTaintRule {
	r := &resourcev1.DeviceTaintRule{}
	r.Name = name
	r.Spec.DeviceSelector = &resourcev1.DeviceTaintSelector{}
	for value, field := range map[string]**string{driver: &r.Spec.DeviceSelector.Driver, pool: &r.Spec.DeviceSelector.Pool, device: &r.Spec.DeviceSelector.Device} {
		if value != "" {
			*field = new(value)
		}
	}
	r.Spec.Taint = resourcev1.DeviceTaint{Key: key, Effect: effect}
	return r
}

// selectors returns selectors of CEL expressions.
func selectors(expressions []string) (out []resourcev1.DeviceSelector) {
	for _, x := range expressions {
		out = append(out, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: x}})
	}
	return out
}

// counters returns name, quantity pairs as counters.
func counters(pairs []string) map[string]resourcev1.Counter {
	out := map[string]resourcev1.Counter{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = resourcev1.Counter{Value: resource.MustParse(pairs[i+1])}
	}
	return out
}

// nodesIn returns a selector of nodes whose label has one of the values.
func nodesIn(key string, values []string) *v1.NodeSelector {
	return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{labelIn(key, values)}}
}

// nodesNamed returns a selector of a node by its name, as allocations of its own devices have it.
func nodesNamed(name string) *v1.NodeSelector {
	return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{
		{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{name}}}}}}
}
