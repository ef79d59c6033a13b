package devices

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// Published is what one driver publishes on a node: whole pools, without the names of the node and of
// the pools. Other nodes of the kind will have the same. It isn't changed once it is made.
type Published struct {
	Driver string
	// Devices is how many devices there are: a set of counters is one, with all that consumes of it.
	Devices int
	pools   [][]*resourcev1.ResourceSlice // by the pools' and the slices' names
	digest  Digest
}

// Same reports whether two drivers publish the same. Either may be nil.
func (p *Published) Same(o *Published) bool {
	return p == o || p != nil && o != nil && p.digest == o.digest
}

// NewPublished returns what a driver publishes by slices of its pools for one node; nil if there is
// none, or a pool isn't whole. Of a pool only the newest generation counts.
//
// A taint that all devices have is the driver's way, and stays. One that some have says what is true
// of these at the moment, and goes.
func NewPublished(driver string, list []*resourcev1.ResourceSlice) *Published {
	pools := map[string][]*resourcev1.ResourceSlice{}
	for _, s := range list {
		pools[s.Spec.Pool.Name] = append(pools[s.Spec.Pool.Name], s)
	}
	out := &Published{Driver: driver}
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		whole := wholePool(pools[name])
		if whole == nil {
			return nil
		}
		out.pools = append(out.pools, whole)
	}
	if len(out.pools) == 0 {
		return nil
	}
	common := commonTaints(out.pools)
	sum := sha256.New()
	for _, pool := range out.pools {
		fmt.Fprintf(sum, "%s %d\n", driver, len(pool))
		out.Devices += countDevices(pool)
		for i, s := range pool {
			pool[i] = nameless(s, common)
			d := digestOf(pool[i])
			sum.Write(d[:])
		}
	}
	out.digest = Digest(sum.Sum(nil)[:len(Digest{})])
	return out
}

// wholePool returns the slices of a pool's newest generation, by name; nil if some are missing.
func wholePool(pool []*resourcev1.ResourceSlice) []*resourcev1.ResourceSlice {
	newest := slices.MaxFunc(pool, func(a, b *resourcev1.ResourceSlice) int { return int(a.Spec.Pool.Generation - b.Spec.Pool.Generation) }).Spec.Pool
	out := slices.DeleteFunc(slices.Clone(pool), func(s *resourcev1.ResourceSlice) bool { return s.Spec.Pool.Generation != newest.Generation })
	if int64(len(out)) < newest.ResourceSliceCount {
		return nil
	}
	slices.SortFunc(out, func(a, b *resourcev1.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// countDevices counts the devices of a pool, as Published.Devices does.
func countDevices(pool []*resourcev1.ResourceSlice) (n int) {
	for _, s := range pool {
		n += len(s.Spec.SharedCounters)
		for i := range s.Spec.Devices {
			if len(s.Spec.Devices[i].ConsumesCounters) == 0 {
				n++
			}
		}
	}
	return n
}

// sameTaint reports whether two taints are one, but for when they were added.
func sameTaint(a, b *resourcev1.DeviceTaint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
}

func hasTaint(list []resourcev1.DeviceTaint, t *resourcev1.DeviceTaint) bool {
	return slices.ContainsFunc(list, func(x resourcev1.DeviceTaint) bool { return sameTaint(&x, t) })
}

// commonTaints returns the taints that all devices have.
func commonTaints(pools [][]*resourcev1.ResourceSlice) (common []resourcev1.DeviceTaint) {
	first := true
	for _, pool := range pools {
		for _, s := range pool {
			for i := range s.Spec.Devices {
				taints := s.Spec.Devices[i].Taints
				if first {
					common, first = slices.Clone(taints), false
				}
				common = slices.DeleteFunc(common, func(t resourcev1.DeviceTaint) bool { return !hasTaint(taints, &t) })
			}
		}
	}
	return common
}

// nameless returns a slice without the names that are its node's and its pool's, and without the taints
// that aren't common to all devices.
func nameless(s *resourcev1.ResourceSlice, common []resourcev1.DeviceTaint) *resourcev1.ResourceSlice {
	out := &resourcev1.ResourceSlice{Spec: s.Spec}
	out.Spec.NodeName = nil
	out.Spec.Pool = resourcev1.ResourcePool{Generation: 1, ResourceSliceCount: s.Spec.Pool.ResourceSliceCount}
	out.Spec.Devices = slices.Clone(s.Spec.Devices)
	for i := range out.Spec.Devices {
		d := &out.Spec.Devices[i]
		d.Taints = slices.DeleteFunc(slices.Clone(d.Taints), func(t resourcev1.DeviceTaint) bool { return !hasTaint(common, &t) })
		for k := range d.Taints {
			d.Taints[k].TimeAdded = nil
		}
	}
	return out
}

// On returns the slices that the driver will publish on a node. Those of equal Published differ in names
// only, and their names have one order.
func (p *Published) On(node string) (out []*resourcev1.ResourceSlice) {
	for i, pool := range p.pools {
		name := fmt.Sprintf("%s/%03d", node, i)
		for k, s := range pool {
			c := *s
			c.Name = fmt.Sprintf("%s/%s/%03d", name, p.Driver, k)
			c.Spec.NodeName, c.Spec.Pool.Name = &node, name
			out = append(out, &c)
		}
	}
	return out
}

// Publishes reports whether a driver has published on a node what it is to publish there: as many pools,
// all of them whole. How many devices they have is the driver's to say. It doesn't allocate.
func (v *Inventory) Publishes(node string, p *Published) bool {
	whole := 0
	for _, x := range v.pinned[node] {
		if x.Driver != p.Driver || !x.isOf(node) {
			continue
		}
		if !x.whole() {
			return false
		}
		whole++
	}
	return whole >= len(p.pools)
}

// isOf reports whether all of a pool is a node's.
func (p *pool) isOf(node string) bool {
	return !slices.ContainsFunc(p.slices, func(s *slice) bool { return s.devices != nil || s.where.name != node })
}

// whole reports whether all slices of the pool's newest generation are there.
func (p *pool) whole() bool {
	var newest resourcev1.ResourcePool
	met := int64(0)
	for _, s := range p.slices {
		switch is := &s.object.Spec.Pool; {
		case met == 0 || is.Generation > newest.Generation:
			newest, met = *is, 1
		case is.Generation == newest.Generation:
			met++
		}
	}
	return met > 0 && met >= newest.ResourceSliceCount
}

// PublishedOn returns what a driver publishes on a node, in pools that are the node's alone; nil if that
// is nothing, or isn't all there.
func (v *Inventory) PublishedOn(node, driver string) *Published {
	return NewPublished(driver, v.SlicesOn(node, driver))
}

// SlicesOn returns the slices of a driver's pools that are a node's alone.
func (v *Inventory) SlicesOn(node, driver string) (out []*resourcev1.ResourceSlice) {
	for _, p := range v.pinned[node] {
		if p.Driver == driver && p.isOf(node) {
			for _, s := range p.slices {
				out = append(out, s.object)
			}
		}
	}
	return out
}

// DriversOn returns the drivers that publish something on a node, by name.
func (v *Inventory) DriversOn(node string) (out []string) {
	for _, p := range v.pinned[node] {
		if !slices.Contains(out, p.Driver) {
			out = append(out, p.Driver) // the pools are sorted by driver
		}
	}
	return out
}

// Template is what drivers will publish on new nodes, as somebody declares it: by driver.
type Template struct{ Drivers []*Published }

// NewTemplate returns what slices without a node declare; nil for nothing. All slices of a pool are
// taken to be there.
func NewTemplate(list []resourcev1.ResourceSlice) *Template {
	byDriver := map[string][]*resourcev1.ResourceSlice{}
	for i := range list {
		s := list[i]
		s.Spec.Pool.Generation, s.Spec.Pool.ResourceSliceCount = 1, 0
		s.Name = fmt.Sprintf("%06d", i)
		for k := range list {
			if poolOf(&list[k]) == poolOf(&s) {
				s.Spec.Pool.ResourceSliceCount++
			}
		}
		byDriver[s.Spec.Driver] = append(byDriver[s.Spec.Driver], &s)
	}
	if len(byDriver) == 0 {
		return nil
	}
	out := &Template{}
	for _, driver := range slices.Sorted(maps.Keys(byDriver)) {
		out.Drivers = append(out.Drivers, NewPublished(driver, byDriver[driver]))
	}
	return out
}

// Same reports whether two templates declare the same. Either may be nil.
func (t *Template) Same(o *Template) bool {
	if t == nil || o == nil {
		return t == o
	}
	return slices.EqualFunc(t.Drivers, o.Drivers, (*Published).Same)
}
