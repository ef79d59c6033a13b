package devices

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// How many devices of a class there are, for those who bound a cluster's devices. It is a count of what is
// published, taken or not, and not of what could be allocated:
//
//	devices that                        count as
//	consume counters of one set         one, if any of them is of the class: they are parts of one
//	any other                           one each
//
// Of a pool the slices of the newest generation count.

// counted is what a count follows from.
type counted struct{ class, of Digest }

// CountOn returns how many devices of a class are published for a node alone, the one at an index of the
// state. It is remembered: nodes that are alike are counted once.
func (v *Inventory) CountOn(i int32, n *v1.Node, class *resourcev1.DeviceClass) (count int64) {
	pools := v.view(i).pools
	for k := range pools {
		p := &pools[k]
		if !p.isOf(n.Name) {
			continue
		}
		v.published(p, n)
		count += v.countOnce(class, p.static, func() []*resourcev1.ResourceSlice {
			var out []*resourcev1.ResourceSlice
			for _, s := range p.slices {
				if p.age(s) == 0 {
					out = append(out, s.object)
				}
			}
			return out
		})
	}
	return count
}

// CountOf returns how many devices of a class a driver will publish on a node.
func (v *Inventory) CountOf(p *Published, class *resourcev1.DeviceClass) (count int64) {
	return v.countOnce(class, p.digest, func() []*resourcev1.ResourceSlice {
		var out []*resourcev1.ResourceSlice
		for i, pool := range p.pools {
			for _, s := range pool {
				c := *s
				c.Spec.Driver, c.Spec.Pool.Name = p.Driver, fmt.Sprint(i) // sets of two pools are two
				out = append(out, &c)
			}
		}
		return out
	})
}

// countOnce counts the devices of a class among slices, unless that is remembered of what they stand for.
func (v *Inventory) countOnce(class *resourcev1.DeviceClass, of Digest, list func() []*resourcev1.ResourceSlice) int64 {
	key := counted{v.Says(class), of}
	count, ok := v.counts[key]
	if !ok {
		if len(v.counts) >= remembered {
			clear(v.counts)
		}
		count = v.count(class, list())
		v.counts[key] = count
	}
	return count
}

func (v *Inventory) count(class *resourcev1.DeviceClass, list []*resourcev1.ResourceSlice) (count int64) {
	type set struct{ pool, name string }
	met := map[set]bool{}
	for _, s := range list {
		for i := range s.Spec.Devices {
			d := &s.Spec.Devices[i]
			if v.firstFailed(s.Spec.Driver, d, class.Spec.Selectors) != nil {
				continue
			}
			if len(d.ConsumesCounters) > 0 {
				of := set{s.Spec.Pool.Name, d.ConsumesCounters[0].CounterSet}
				if met[of] {
					continue
				}
				met[of] = true
			}
			count++
		}
	}
	return count
}
