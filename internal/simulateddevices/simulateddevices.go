// Package simulateddevices describes the devices of simulated nodes in short, and the ResourceSlices that
// a driver publishes of them (dynamic resource allocation). Nodes of one description have equal
// devices. It draws nothing itself: whoever publishes them draws when.
package simulateddevices

import (
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

// Devices are equal devices of a node, and what they can be divided into.
type Devices struct {
	// Driver that publishes the devices, such as gpu.example.com.
	Driver string `json:"driver"`
	// Pool tells the pools of a driver apart: it is named NODE/POOL, and NODE when absent.
	Pool string `json:"pool,omitempty"`
	// Name of the device, or with Count its prefix; device when absent.
	Name string `json:"name,omitempty"`
	// Count of the devices of each node; one, without a number behind its name, when 0.
	Count int `json:"count,omitempty"`
	// Attributes of each device, as in a ResourceSlice: {model: {string: a100}}.
	Attributes map[resourcev1.QualifiedName]resourcev1.DeviceAttribute `json:"attributes,omitempty"`
	// Capacity of each device, as in a ResourceSlice: {memory: {value: 80Gi}}.
	Capacity map[resourcev1.QualifiedName]resourcev1.DeviceCapacity `json:"capacity,omitempty"`
	// Shared lets several claims have a device, each a part of its capacity.
	Shared bool `json:"shared,omitempty"`
	// Counters are what each device has for itself and its partitions together. The whole device takes
	// all of it.
	Counters map[string]resource.Quantity `json:"counters,omitempty"`
	// Partitions are what a device can be divided into, within its counters.
	Partitions []Partition `json:"partitions,omitempty"`
	// Taints of each device.
	Taints []resourcev1.DeviceTaint `json:"taints,omitempty"`
	// BindingConditions are what the driver has to report of a device before its pod is bound.
	BindingConditions []string `json:"bindingConditions,omitempty"`
}

// Partition is a part of a device that can be allocated like one.
type Partition struct {
	// Name is added to that of the device.
	Name string `json:"name"`
	// Count of such partitions of a device; one, without a number behind its name, when 0.
	Count int `json:"count,omitempty"`
	// Counters are what a partition takes of its device's.
	Counters map[string]resource.Quantity `json:"counters"`
	// Attributes that a partition has beside those of its device, or in their place.
	Attributes map[resourcev1.QualifiedName]resourcev1.DeviceAttribute `json:"attributes,omitempty"`
	// Capacity that a partition has in the place of its device's.
	Capacity map[resourcev1.QualifiedName]resourcev1.DeviceCapacity `json:"capacity,omitempty"`
}

// MaxDevices is how many devices and partitions one entry may give a node.
const MaxDevices = 10_000

// devices returns how many devices and partitions there are of a node.
func (d *Devices) devices() int {
	each := 1
	for i := range d.Partitions {
		each += max(d.Partitions[i].Count, 1)
	}
	return max(d.Count, 1) * each
}

// Validate calls bad with each field that is wrong, its value and what would be accepted. Fields are
// named from the list that at names.
func Validate(list []Devices, at string, bad func(field, format string, args ...any)) {
	seen := map[string]bool{}
	for i := range list {
		d, at := &list[i], fmt.Sprintf("%s[%d]", at, i)
		if why := validation.IsDNS1123Subdomain(d.Driver); len(why) > 0 || len(d.Driver) > resourcev1.DriverNameMaxLength {
			bad(at+".driver", "is %q; it must be a DNS name of at most %d characters, such as gpu.example.com", d.Driver, resourcev1.DriverNameMaxLength)
		}
		d.validateNames(at, bad)
		if d.Count < 0 {
			bad(at+".count", "is %d; it must not be negative", d.Count)
		} else if n := d.devices(); n > MaxDevices {
			bad(at+".count", "makes %d devices of a node, with their partitions; they must be at most %d", n, MaxDevices)
		}
		if id := d.Driver + "\x00" + d.Pool + "\x00" + d.name(); seen[id] {
			bad(at+".name", "%q is given twice in a pool; set name or pool to tell devices apart", d.name())
		} else {
			seen[id] = true
		}
		if n := len(d.Attributes) + len(d.Capacity); n > resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice {
			bad(at+".attributes", "are %d with capacity; they must be at most %d", n, resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice)
		}
		d.validateCounters(at, bad)
	}
}

// validateNames checks the names that the names of objects and devices are made of.
func (d *Devices) validateNames(at string, bad func(field, format string, args ...any)) {
	names := map[string]string{at + ".name": d.Name, at + ".pool": d.Pool}
	for i := range d.Partitions {
		field := fmt.Sprintf("%s.partitions[%d].name", at, i)
		if names[field] = d.Partitions[i].Name; d.Partitions[i].Name == "" {
			bad(field, "is empty; it must tell the partition from its device")
		}
	}
	for _, field := range slices.Sorted(maps.Keys(names)) {
		if name := names[field]; name != "" && (len(validation.IsDNS1123Label(name)) > 0 || len(name) > 40) {
			bad(field, "is %q; it must be at most 40 lower-case letters, digits and hyphens", name)
		}
	}
}

// validateCounters checks that there is what partitions take.
func (d *Devices) validateCounters(at string, bad func(field, format string, args ...any)) {
	for _, name := range slices.Sorted(maps.Keys(d.Counters)) {
		if q := d.Counters[name]; q.Sign() < 0 {
			bad(at+".counters."+name, "is %s; it must not be negative", q.String())
		}
	}
	for i := range d.Partitions {
		p, at := &d.Partitions[i], fmt.Sprintf("%s.partitions[%d]", at, i)
		if p.Count < 0 {
			bad(at+".count", "is %d; it must not be negative", p.Count)
		}
		if len(p.Counters) == 0 {
			bad(at+".counters", "is empty; a partition needs something of its device's counters")
		}
		for _, name := range slices.Sorted(maps.Keys(p.Counters)) {
			q, has := p.Counters[name], d.Counters[name]
			if _, ok := d.Counters[name]; !ok || q.Cmp(has) > 0 || q.Sign() < 0 {
				bad(at+".counters."+name, "is %s; it must be from 0 to what the device has of that counter (%s)", q.String(), has.String())
			}
		}
	}
}

func (d *Devices) name() string {
	if d.Name == "" {
		return "device"
	}
	return d.Name
}

// numbered returns the names of count things of one kind.
func numbered(prefix string, count int) (names []string) {
	if count == 0 {
		return []string{prefix}
	}
	for i := range count {
		names = append(names, fmt.Sprintf("%s-%d", prefix, i))
	}
	return names
}

// pool is what of a node's devices is published together.
type pool struct {
	driver, name string
	counters     []resourcev1.CounterSet
	devices      []resourcev1.Device
}

// Slices returns the slices that the drivers of a node publish, with equal descriptions in equal order.
// Generation is that of the node's pools.
func Slices(list []Devices, node string, generation int64) (out []*resourcev1.ResourceSlice) {
	var pools []*pool
	for i := range list {
		d := &list[i]
		name := node
		if d.Pool != "" {
			name += "/" + d.Pool
		}
		at := slices.IndexFunc(pools, func(p *pool) bool { return p.driver == d.Driver && p.name == name })
		if at < 0 {
			at, pools = len(pools), append(pools, &pool{driver: d.Driver, name: name})
		}
		pools[at].add(d)
	}
	for k, p := range pools {
		out = append(out, p.slices(fmt.Sprintf("%s-%d", node, k), node, generation)...)
	}
	return out
}

// Template returns the slices of a node that isn't there yet: without its name.
func Template(list []Devices) (out []resourcev1.ResourceSlice) {
	for _, s := range Slices(list, "node", 1) {
		s.Spec.NodeName = nil
		out = append(out, *s)
	}
	return out
}

// add adds devices, and their partitions.
func (p *pool) add(d *Devices) {
	for _, name := range numbered(d.name(), d.Count) {
		device := resourcev1.Device{Name: name, Attributes: d.Attributes, Capacity: d.Capacity, Taints: d.Taints, BindingConditions: d.BindingConditions}
		if d.Shared {
			device.AllowMultipleAllocations = ptr.To(true)
		}
		if len(d.Counters) > 0 {
			p.counters = append(p.counters, resourcev1.CounterSet{Name: name, Counters: counters(d.Counters)})
			device.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: name, Counters: counters(d.Counters)}}
		}
		p.devices = append(p.devices, device)
		for i := range d.Partitions {
			part := &d.Partitions[i]
			for _, partition := range numbered(name+"-"+part.Name, part.Count) {
				device := resourcev1.Device{Name: partition, Attributes: maps.Clone(d.Attributes), Capacity: part.Capacity, Taints: d.Taints, BindingConditions: d.BindingConditions,
					ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: name, Counters: counters(part.Counters)}}}
				if device.Attributes == nil {
					device.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}
				}
				maps.Copy(device.Attributes, part.Attributes)
				p.devices = append(p.devices, device)
			}
		}
	}
}

func counters(amounts map[string]resource.Quantity) map[string]resourcev1.Counter {
	out := map[string]resourcev1.Counter{}
	for name, q := range amounts {
		out[name] = resourcev1.Counter{Value: q}
	}
	return out
}

// slices returns the slices of the pool: those with counters first, since a slice has either counters or devices.
func (p *pool) slices(prefix, node string, generation int64) (out []*resourcev1.ResourceSlice) {
	add := func(spec resourcev1.ResourceSliceSpec) {
		spec.Driver, spec.NodeName = p.driver, &node
		spec.Pool = resourcev1.ResourcePool{Name: p.name, Generation: generation}
		out = append(out, &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%03d", prefix, len(out))}, Spec: spec})
	}
	for sets := range slices.Chunk(p.counters, resourcev1.ResourceSliceMaxCounterSets) {
		add(resourcev1.ResourceSliceSpec{SharedCounters: sets})
	}
	for devices := range slices.Chunk(p.devices, resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures) {
		add(resourcev1.ResourceSliceSpec{Devices: devices})
	}
	for _, s := range out {
		s.Spec.Pool.ResourceSliceCount = int64(len(out))
	}
	return out
}
