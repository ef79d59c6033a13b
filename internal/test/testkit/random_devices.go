package testkit

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
)

// This file draws what is published about devices: slices of pools, classes and taint rules. What must
// hold: an API server would admit each object. Between objects everything may disagree: pools are
// incomplete or in the middle of a change, names are used twice, what is consumed doesn't exist.

// The names of random devices. Drivers and classes are few, so that claims find devices.
// gpu.example is there twice, to be drawn twice as often.
var (
	deviceDrivers  = []string{"gpu.example", "gpu.example", "nic.example", "part.example", "share.example"}
	sharedPools    = []string{"fabric", "rack", "spread"} // that aren't one node's
	deviceTaints   = []string{"example.com/broken", "example.com/kept"}
	deviceModels   = []string{"a", "a", "b"}
	deviceVersions = []Version{"1.2.0", "2.0.1"}
)

// deviceClassNames are the names of random classes; a name always has the same meaning.
// Some have devices, some have none, and some fail to evaluate: randomDeviceClass says
// which is which.
var deviceClassNames = []string{"gpus", "large", "nics", "parts", "shares", "any", "odd", "none", "others"}

// RandomDevices draws what drivers and administrators have published in a cluster with these nodes:
// classes, slices of pools of any kind, and taint rules.
// With a class missing in two of a hundred draws, claims of a class that doesn't exist are
// tried as well.
func RandomDevices(t *rapid.T, nodes []*v1.Node) []cluster.Object {
	var out []cluster.Object
	for _, name := range deviceClassNames {
		if maybe(t, 98, "class exists") {
			out = append(out, randomDeviceClass(t, name))
		}
	}
	for _, n := range nodes {
		for i := range 1 + Uniform(t, 3, "pools of the node") {
			pool := n.Name // no pool twice: of slices that contradict each other kube-scheduler believes any
			if i > 0 {
				pool = fmt.Sprint(n.Name, "-", i)
			}
			// Nodes have one to three pools, of any driver each: what a node has of devices
			// differs even in number.
			out = append(out, randomPool(t, fmt.Sprint(n.Name, "-", i), pool, func(s *ResourceSliceBuilder) { s.OnNode(n.Name) })...)
		}
	}
	for _, name := range sharedPools {
		if maybe(t, 25, "shared pool") {
			out = append(out, randomSharedPool(t, name, nodes)...)
		}
	}
	for i := range Uniform(t, 3, "taint rules") {
		out = append(out, randomTaintRule(t, fmt.Sprint("rule", i)))
	}
	return out
}

// randomSharedPool draws a pool whose devices are usable from several nodes.
// The names stand for the three ways to say where: on every node, by a selector, or device
// by device.
func randomSharedPool(t *rapid.T, name string, nodes []*v1.Node) []cluster.Object {
	switch name {
	case "fabric":
		return randomPool(t, name, name, func(s *ResourceSliceBuilder) { s.Everywhere() })
	case "rack":
		zone := pick(t, zones, "zone of the pool")
		return randomPool(t, name, name, func(s *ResourceSliceBuilder) { s.In(v1.LabelTopologyZone, zone) })
	}
	return randomPool(t, name, name, func(s *ResourceSliceBuilder) {
		s.PerDevice()
		for i := range s.Spec.Devices {
			d := &DeviceBuilder{s.Spec.Devices[i]}
			switch Uniform(t, 3, "device is") {
			case 0:
				d.OnNode(pick(t, nodes, "device on").Name)
			case 1:
				d.In(v1.LabelTopologyZone, pick(t, zones, "device in"))
			default:
				d.Everywhere()
			}
			s.Spec.Devices[i] = d.Device
		}
	})
}

// randomPool draws the slices of a pool, which place puts where they belong. Slices may be missing, and
// those of an older generation may be left.
func randomPool(t *rapid.T, slice, pool string, place func(*ResourceSliceBuilder)) (out []cluster.Object) {
	driver := pick(t, deviceDrivers, "driver")
	generation := int64(1 + Uniform(t, 2, "generation"))
	var builders []*ResourceSliceBuilder
	add := func(name string) *ResourceSliceBuilder {
		b := ResourceSlice(name, driver, pool).Generation(generation)
		builders = append(builders, b)
		return b
	}
	// Counters are in a slice of their own, which has no devices; that is what the API
	// wants.
	if driver == "part.example" {
		place(add(slice+"-counters").Counters("memory", "gib", pick(t, []string{"40", "80", "10"}, "counted")))
	}
	n := 0
	for i := range 1 + Uniform(t, 2, "slices") {
		b := add(fmt.Sprint(slice, "-", i))
		for k := range 1 + Uniform(t, 3, "devices") {
			name := fmt.Sprint("d", n)
			// A name that two slices of a pool have makes the pool invalid; its devices are
			// for nobody.
			if n++; i > 0 && k == 0 && maybe(t, 4, "named as one of another slice") {
				name = "d0"
			}
			b.Devices(randomDevice(t, driver, name))
		}
		place(b)
	}
	// A pool is only usable when as many slices are there as each of them says.
	count := int64(len(builders))
	if maybe(t, 8, "incomplete") {
		count++
	}
	for _, b := range builders {
		out = append(out, b.Of(count).Obj())
	}
	// Their devices must not be allocated any more, nor keep the pool from being complete.
	if generation > 1 && maybe(t, 40, "old slices are left") {
		old := ResourceSlice(slice+"-old", driver, pool).Generation(generation-1).Devices(randomDevice(t, driver, "d0"), randomDevice(t, driver, "old"))
		place(old)
		out = append(out, old.Obj())
	}
	return out
}

// randomDevice draws a device as its driver publishes it.
// Attributes differ by driver, so that a selector for one of them fails to evaluate on the
// others.
func randomDevice(t *rapid.T, driver, name string) *DeviceBuilder {
	d := Device(name)
	switch driver {
	case "gpu.example":
		d.Attr("model", pick(t, deviceModels, "model")).Attr("driverVersion", pick(t, deviceVersions, "version")).Capacity("memory", pick(t, []string{"10Gi", "40Gi"}, "memory"))
	case "nic.example":
		d.Attr("rdma", rapid.Bool().Draw(t, "rdma"))
	case "part.example":
		d.Consumes(cmp.Or(map[bool]string{true: "absent"}[maybe(t, 2, "no such set")], "memory"), "gib", pick(t, []string{"10", "20", "40"}, "consumed"))
	case "share.example":
		d = sharedDevice(t, d)
	}
	if maybe(t, 80, "has a root") {
		d.Attr("topology.example/root", pick(t, []string{"r0", "r1"}, "root"))
	}
	if maybe(t, 70, "has an index") {
		d.Attr("index", Uniform(t, 3, "index"))
	}
	if maybe(t, 12, "tainted") {
		d.Taint(pick(t, deviceTaints, "taint"), pick(t, []string{"", "x"}, "value"), randomTaintEffect(t))
	}
	if maybe(t, 8, "binds") {
		d.BindsWhen("example.com/ready", "example.com/failed")
	}
	return d
}

// sharedDevice draws what allocations may consume of a device.
// The three policies are: any amount, a range in steps, or one of a few values.
func sharedDevice(t *rapid.T, d *DeviceBuilder) *DeviceBuilder {
	if maybe(t, 15, "of one claim") {
		return d.Capacity("share", "100")
	}
	d.Shared()
	switch Uniform(t, 3, "policy") {
	case 0:
		return d.Ranged("share", "100", pick(t, []string{"10", "25"}, "least"), "5")
	case 1:
		return d.Valued("share", "100", "20", "50", "100")
	}
	return d.Capacity("share", "100")
}

// randomTaintEffect draws an effect. None is one that must keep nobody away.
func randomTaintEffect(t *rapid.T) resourcev1.DeviceTaintEffect {
	return pick(t, []resourcev1.DeviceTaintEffect{resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintEffectNone}, "effect")
}

// randomTaintRule draws a rule for some of the devices; one in a few is for all.
func randomTaintRule(t *rapid.T, name string) *resourcev1.DeviceTaintRule {
	driver, pool, device := "", "", ""
	// Each part of the selector may be missing, which widens it.
	if maybe(t, 90, "of a driver") {
		driver = pick(t, deviceDrivers, "driver")
	}
	if maybe(t, 60, "of a pool") {
		pool = pick(t, append([]string{"n0", "n1", "n1-1"}, sharedPools...), "pool")
	}
	if maybe(t, 60, "of a name") {
		device = pick(t, []string{"d0", "d1"}, "device")
	}
	r := DeviceTaintRule(name, driver, pool, device, pick(t, deviceTaints, "taint"), randomTaintEffect(t))
	// Without a selector the rule is for no device.
	if maybe(t, 5, "selects nothing") {
		r.Spec.DeviceSelector = nil
	}
	return r
}

// randomDeviceClass draws the class of a name. No two that back an extended resource back the same: of
// such classes kube-scheduler's cache forgets the implicit name of one, depending on the order of events.
// A later version of a class differs in its config only.
func randomDeviceClass(t *rapid.T, name string) *resourcev1.DeviceClass {
	var c *resourcev1.DeviceClass
	switch name {
	case "gpus":
		c = DeviceClass(name, "example.com/gpu", `device.driver == "gpu.example"`)
	case "large":
		c = DeviceClass(name, "example.com/large", `device.driver == "gpu.example"`, `device.capacity["gpu.example"].memory.isGreaterThan(quantity("20Gi"))`)
	case "nics":
		c = DeviceClass(name, "", `device.driver == "nic.example"`)
	case "parts":
		c = DeviceClass(name, "", `device.driver == "part.example"`)
	case "shares":
		c = DeviceClass(name, "example.com/share", `device.driver == "share.example"`)
	case "odd": // fails for devices without the attribute
		c = DeviceClass(name, "", `device.attributes["topology.example"].root == "r0"`)
	case "none":
		c = DeviceClass(name, "", `false`)
	default:
		c = DeviceClass(name, "")
	}
	if maybe(t, 20, "class has a config") {
		c.Spec.Config = []resourcev1.DeviceClassConfiguration{{DeviceConfiguration: randomConfig(name)}}
	}
	return c
}

// randomConfig returns a configuration for a driver.
// It has no meaning for the scheduler, which copies it into allocations.
func randomConfig(of string) resourcev1.DeviceConfiguration {
	c := resourcev1.OpaqueDeviceConfiguration{Driver: "gpu.example"}
	c.Parameters.Raw = fmt.Appendf(nil, `{"of":%q}`, of)
	return resourcev1.DeviceConfiguration{Opaque: &c}
}

// RandomDeviceChange draws a change of what is published and claimed in a cluster with these nodes, where
// these objects are there: one that is new or another version, or one of them that is gone.
// Claims change more often than classes and rules, as in a cluster.
func RandomDeviceChange(t *rapid.T, nodes []*v1.Node, there []cluster.Object) (o cluster.Object, gone bool) {
	switch Uniform(t, 10, "change of") {
	case 0:
		return randomDeviceClass(t, pick(t, deviceClassNames, "class")), false
	case 1:
		return randomTaintRule(t, fmt.Sprint("rule", Uniform(t, 3, "rule"))), false
	case 2, 3, 4:
		ns := pick(t, spaces, "ns")
		// A claim that is set again is drawn as a whole, so that it may lose or get an
		// allocation.
		if maybe(t, 60, "shared") {
			return randomDeviceClaim(t, ns, pick(t, sharedClaims, "claim"), there), false
		}
		return randomTemplateClaim(t, ns, pick(t, claimingPods, "claim of"), there), false
	}
	if len(there) == 0 {
		pool := randomPool(t, "first", "first", func(s *ResourceSliceBuilder) { s.OnNode(pick(t, nodes, "pool on").Name) })
		return pool[0], false
	}
	o = there[Uniform(t, len(there), "object")]
	// In four of five draws a slice changes; otherwise it is deleted, like objects of any
	// other kind.
	if s, ok := o.(*resourcev1.ResourceSlice); ok && maybe(t, 80, "changes") {
		return changedSlice(t, s), false
	}
	return o, true
}

// changedSlice returns another version of a slice: a device comes, goes or is another, or the pool gets a
// new generation, to which this slice belongs first.
// The original stays as it is: the state has it.
func changedSlice(t *rapid.T, s *resourcev1.ResourceSlice) *resourcev1.ResourceSlice {
	s = s.DeepCopy()
	devices := len(s.Spec.Devices)
	k := Uniform(t, 4, "how")
	if devices == 0 || k == 0 {
		s.Spec.Pool.Generation++
		return s
	}
	i := Uniform(t, devices, "which device")
	old := s.Spec.Devices[i]
	switch another := randomDevice(t, s.Spec.Driver, old.Name); {
	case k == 1 && devices > 1:
		s.Spec.Devices = slices.Delete(s.Spec.Devices, i, i+1)
	case k == 2:
		another.Name = freeName(s.Spec.Devices)
		// Where a device is usable stays, since the slice says for all of them how that is
		// expressed.
		another.NodeName, another.NodeSelector, another.AllNodes = old.NodeName, old.NodeSelector, old.AllNodes
		s.Spec.Devices = append(s.Spec.Devices, another.Device)
	default:
		another.NodeName, another.NodeSelector, another.AllNodes = old.NodeName, old.NodeSelector, old.AllNodes
		s.Spec.Devices[i] = another.Device
	}
	return s
}

// freeName returns a name that none of the devices has.
func freeName(devices []resourcev1.Device) string {
	for n := 0; ; n++ {
		name := fmt.Sprint("late", n)
		if !slices.ContainsFunc(devices, func(d resourcev1.Device) bool { return d.Name == name }) {
			return name
		}
	}
}

// publishedDevices returns allocations of a request to each device of some slices, in their order.
// A device that several slices publish is listed once: no API server would let a claim have
// it twice.
func publishedDevices(request string, objects []cluster.Object) (out []resourcev1.DeviceRequestAllocationResult) {
	for _, o := range objects {
		s, ok := o.(*resourcev1.ResourceSlice)
		if !ok {
			continue
		}
		for _, d := range s.Spec.Devices {
			r := Allocation(request, s.Spec.Driver, s.Spec.Pool.Name, d.Name)
			r.BindingConditions, r.BindingFailureConditions = d.BindingConditions, d.BindingFailureConditions
			if d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations {
				// What claims already have is always 25, less than the capacity of any
				// shared device.
				r.ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{"share": resource.MustParse("25")}
			}
			if !slices.ContainsFunc(out, func(x resourcev1.DeviceRequestAllocationResult) bool {
				return x.Driver == r.Driver && x.Pool == r.Pool && x.Device == r.Device
			}) {
				out = append(out, r)
			}
		}
	}
	return out
}

// RandomDeviceClass draws a DeviceClass, which may back the extended resource that random pods request
// and random nodes have; gone says that it is to be deleted.
func RandomDeviceClass(t *rapid.T) (c *resourcev1.DeviceClass, gone bool) {
	resource := ""
	if maybe(t, 70, "backs") {
		resource = pick(t, []string{"example.com/gpu", "example.com/gpu", "example.com/fpga"}, "backed")
	}
	return DeviceClass(pick(t, []string{"gpus", "others"}, "device class"), resource), maybe(t, 40, "class is gone")
}

// changeDeviceClass sets or removes a DeviceClass.
// It returns what it did in words, for the log of a failing test.
func (w *World) changeDeviceClass(t *rapid.T) string {
	c, gone := RandomDeviceClass(t)
	if gone {
		w.State.RemoveObject(cluster.DeviceClassKind, "", c.Name)
		return "remove device class " + c.Name
	}
	w.State.SetObject(c)
	backed := ""
	if c.Spec.ExtendedResourceName != nil {
		backed = *c.Spec.ExtendedResourceName
	}
	return "set device class " + c.Name + " backing " + backed
}
