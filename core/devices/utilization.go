package devices

import (
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// How much of a node's devices is taken, as Cluster Autoscaler counts
// (simulator/dynamicresources/utils/utilization.go there). Only pools for the node alone count, and of
// these the slices of the newest generation.
//
//	devices of a pool        what share is taken
//	none consumes counters   of the devices
//	all taken ones do        of each set of counters that of the counter with the largest; their mean
//	both                     the mean of the two, weighted by how many devices and how many sets there are

// Utilization returns the largest share that is taken of a pool of a node, and that pool; the last by
// driver and name where several are alike. ok is false when the node has no devices of its own. Of a pool
// of which slices are missing all counts as taken, since nobody knows: Cluster Autoscaler keeps such a
// node, too.
func (v *Inventory) Utilization(node string) (share float64, of PoolID, ok bool) {
	for _, p := range v.pinned[node] {
		s := 1.0
		if x := p.load(node); x != nil {
			s = x.share()
		}
		if s >= share {
			share, of, ok = s, p.PoolID, true
		}
	}
	return share, of, ok
}

// poolLoad is what there is of a pool, and what of it is taken.
type poolLoad struct {
	devices, taken int // those that consume no counters
	partitions     int // taken devices that consume some
	sets           map[string]bool
	counters, used map[counter]*resource.Quantity
}

// counter names a counter of a pool.
type counter struct{ set, name string }

// load counts a node's pool; nil when slices of it are missing.
func (p *pool) load(node string) *poolLoad {
	newest, found := int64(0), int64(0)
	for _, s := range p.slices {
		newest = max(newest, s.object.Spec.Pool.Generation)
	}
	taken := map[string]bool{}
	p.eachTaken(func(r *resourcev1.DeviceRequestAllocationResult) { taken[r.Device] = true })
	x := &poolLoad{sets: map[string]bool{}, counters: map[counter]*resource.Quantity{}, used: map[counter]*resource.Quantity{}}
	wanted := int64(0)
	for _, s := range p.slices {
		if s.object.Spec.Pool.Generation != newest || s.where.name != node {
			continue
		}
		found, wanted = found+1, s.object.Spec.Pool.ResourceSliceCount
		for i := range s.object.Spec.SharedCounters {
			add(x.counters, s.object.Spec.SharedCounters[i].Name, s.object.Spec.SharedCounters[i].Counters)
		}
		for i := range s.object.Spec.Devices {
			x.count(&s.object.Spec.Devices[i], taken[s.object.Spec.Devices[i].Name])
		}
	}
	if found != wanted {
		return nil
	}
	return x
}

// count counts a device.
func (x *poolLoad) count(d *resourcev1.Device, taken bool) {
	if len(d.ConsumesCounters) == 0 {
		x.devices++
		if taken {
			x.taken++
		}
		return
	}
	if taken {
		x.partitions++
	}
	for i := range d.ConsumesCounters {
		c := &d.ConsumesCounters[i]
		x.sets[c.CounterSet] = true
		if taken {
			add(x.used, c.CounterSet, c.Counters)
		}
	}
}

func add(to map[counter]*resource.Quantity, set string, counters map[string]resourcev1.Counter) {
	for name, c := range counters {
		key := counter{set, name}
		if to[key] == nil {
			to[key] = &resource.Quantity{}
		}
		to[key].Add(c.Value)
	}
}

// share returns what share of the pool is taken.
func (x *poolLoad) share() float64 {
	whole := 0.0
	if x.devices > 0 {
		whole = float64(x.taken) / float64(x.devices)
	}
	switch {
	case x.partitions == 0:
		return whole
	case x.taken == 0:
		return x.counted()
	}
	devices, sets := float64(x.devices), float64(len(x.sets))
	return (x.counted()*sets + whole*devices) / (sets + devices)
}

// counted returns the mean over the sets of counters of the largest share that is used of one.
func (x *poolLoad) counted() (sum float64) {
	largest := map[string]float64{}
	for key, all := range x.counters {
		if used := x.used[key]; used != nil && all.Value() != 0 {
			largest[key.set] = max(largest[key.set], float64(used.Value())/float64(all.Value()))
		}
	}
	for _, set := range slices.Sorted(maps.Keys(largest)) { // the sum of floats depends on their order
		sum += largest[set]
	}
	return sum / float64(len(x.sets))
}
