package devices

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// How much of a pool's devices is free, for those who keep devices together (Workload). It is a measure,
// not a rule: what can be allocated is for the allocator to say.
//
// A unit is what is whole or broken into: the counter set of devices that consume counters, and otherwise
// the device. Amounts are in thousandths of a unit, parts of these rounded up:
//
//	the device                  what an allocation takes
//	consumes counters           the largest share of one of the set's counters
//	may be allocated often      the largest share of one of its capacities
//	any other                   all of it

// whole is a unit of which nothing is taken.
const whole = 1000

// units are the units of a pool that is published for one node. The zero value is that of other pools,
// which no node can keep together.
type units struct {
	free    []int32 // of each unit
	devices map[string]unit
	packed  []*resourcev1.ResourceSlice // see pack
}

// unit is a device with the unit that is taken with it.
type unit struct {
	at     int
	device *resourcev1.Device
}

// Use is an amount of a unit: that of a pool, by its position among those that a node sees.
type Use struct{ Pool, Unit, Amount int32 }

// measure finds the units of a pool anew, and what its claims take of them.
func (p *pool) measure() {
	p.units = units{}
	if len(p.slices) == 0 || slices.ContainsFunc(p.slices, func(s *slice) bool {
		return s.devices != nil || s.where.name == "" || s.where.name != p.slices[0].where.name
	}) {
		return
	}
	p.findUnits()
	counted := map[string]bool{} // devices of which counters are consumed, however often they are allocated
	p.eachTaken(func(r *resourcev1.DeviceRequestAllocationResult) {
		x, ok := p.units.devices[r.Device]
		if !ok || counted[r.Device] {
			return
		}
		counted[r.Device] = len(x.device.ConsumesCounters) > 0
		p.units.free[x.at] = max(p.units.free[x.at]-p.amount(x.device, r), 0)
	})
	p.units.packed = p.pack()
}

// findUnits lists the units, in the order in which their devices are allocated.
func (p *pool) findUnits() {
	u := &p.units
	u.devices = map[string]unit{}
	sets := map[string]int{}
	for _, s := range p.slices {
		for i := range s.object.Spec.Devices {
			d := &s.object.Spec.Devices[i]
			at := len(u.free)
			if len(d.ConsumesCounters) > 0 {
				set := d.ConsumesCounters[0].CounterSet
				if known, ok := sets[set]; ok {
					at = known
				}
				sets[set] = at
			}
			u.devices[d.Name] = unit{at, d}
			if at == len(u.free) {
				u.free = append(u.free, whole)
			}
		}
	}
}

// amount returns what an allocation takes of a device's unit.
func (p *pool) amount(d *resourcev1.Device, r *resourcev1.DeviceRequestAllocationResult) (most int32) {
	switch {
	case len(d.ConsumesCounters) > 0:
		for name, c := range d.ConsumesCounters[0].Counters {
			most = max(most, share(c.Value, p.counter(d.ConsumesCounters[0].CounterSet, name)))
		}
		return most
	case r.ShareID != nil:
		for name, q := range r.ConsumedCapacity {
			most = max(most, share(q, d.Capacity[name].Value))
		}
		return most
	}
	return whole
}

// counter returns the value of a counter set's counter.
func (p *pool) counter(set, name string) (q resource.Quantity) {
	for _, s := range p.slices {
		for i := range s.object.Spec.SharedCounters {
			if c := &s.object.Spec.SharedCounters[i]; c.Name == set {
				q = c.Counters[name].Value
			}
		}
	}
	return q
}

// share returns which part of a quantity another one is, in thousandths and rounded up; all of it of
// nothing.
func share(part, of resource.Quantity) int32 {
	x, all := part.AsApproximateFloat64(), of.AsApproximateFloat64()
	if all <= 0 || x >= all {
		return whole
	}
	n := int32(x / all * whole)
	if float64(n)*all < x*whole {
		n++
	}
	return n
}

// pack returns the slices with their devices in the order in which they fill up units that are broken
// into: those of which the least is free come first, and whole ones last.
func (p *pool) pack() (out []*resourcev1.ResourceSlice) {
	free := func(d resourcev1.Device) int32 { return p.units.free[p.units.devices[d.Name].at] }
	byFree := func(a, b resourcev1.Device) int { return int(free(a) - free(b)) }
	for _, s := range p.slices {
		o := s.tainted
		if !slices.IsSortedFunc(o.Spec.Devices, byFree) {
			sorted := *o
			sorted.Spec.Devices = slices.Clone(o.Spec.Devices)
			slices.SortStableFunc(sorted.Spec.Devices, byFree)
			o = &sorted
		}
		out = append(out, o)
	}
	return out
}

// uses returns what allocations take of the units that a node sees, each unit once.
func (w *view) uses(allocated []resourcev1.AllocationResult) (out []Use) {
	for i := range allocated {
		results := allocated[i].Devices.Results
		for k := range results {
			r := &results[k]
			at := slices.IndexFunc(w.pools, func(p seen) bool { return p.PoolID == PoolID{r.Driver, r.Pool} })
			if at < 0 || r.AdminAccess != nil && *r.AdminAccess {
				continue
			}
			p := w.pools[at]
			x, ok := p.units.devices[r.Device]
			if !ok {
				continue
			}
			amount := p.amount(x.device, r)
			same := slices.IndexFunc(out, func(u Use) bool { return u.Pool == int32(at) && u.Unit == int32(x.at) })
			if same < 0 {
				out = append(out, Use{int32(at), int32(x.at), amount})
				continue
			}
			out[same].Amount += amount
		}
	}
	return out
}
