package devices

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// This file tells people why the devices of a node don't do for a request, each device by itself. It
// decides nothing: what can be had together, with constraints and counters, is the library's to say.

// Wanted is what a request, or one of its alternatives, demands of each device.
type Wanted struct {
	Class       *resourcev1.DeviceClass
	Selectors   []resourcev1.DeviceSelector
	Tolerations []resourcev1.DeviceToleration
}

// Judged is a device of the class that is asked for, with the first thing that is against it.
type Judged struct {
	Device *resourcev1.Device // as it is with the taints of rules
	Pool   PoolID
	Taken  bool                          // by a claim, as a whole
	Broken string                        // why nothing of its pool is allocated; "" if something may be
	Taint  *resourcev1.DeviceTaint       // that isn't tolerated, nil for none
	Failed *resourcev1.CELDeviceSelector // that it doesn't match, nil for none
}

// Judge returns the devices of a class that a node sees, by pool, and what is against each. It evaluates
// selectors of all of them, and is for people.
func (v *Inventory) Judge(i int32, n *v1.Node, w *Wanted) (out []Judged) {
	if i < 0 || int(i) >= len(v.views) {
		return nil
	}
	for _, p := range v.views[i].pools {
		taken := nothingTaken()
		p.addTo(&taken)
		whole := map[string]bool{}
		for id := range taken.AllocatedDevices {
			whole[id.Device.String()] = true
		}
		broken := p.broken(n)
		for _, s := range p.slices {
			if p.age(s) > 0 || !s.matches(n) {
				continue
			}
			for k := range s.tainted.Spec.Devices {
				d := &s.tainted.Spec.Devices[k]
				if s.devices != nil && !s.devices[k].matches(n) || v.firstFailed(p.Driver, d, w.Class.Spec.Selectors) != nil {
					continue
				}
				out = append(out, Judged{Device: d, Pool: p.PoolID, Taken: whole[d.Name], Broken: broken, Taint: untolerated(d, w.Tolerations), Failed: v.firstFailed(p.Driver, d, w.Selectors)})
			}
		}
	}
	return out
}

// broken says why the library allocates nothing of a pool on a node: slices of its newest generation are missing, or
// contradict each other. It is "" when neither is so.
func (p *pool) broken(n *v1.Node) string {
	newest := slices.DeleteFunc(slices.Clone(p.slices), func(s *slice) bool { return p.age(s) > 0 })
	if len(newest) == 0 {
		return ""
	}
	id, of := p.Driver+"/"+p.Name, newest[0].object.Spec.Pool
	if has := int64(len(newest)); has != of.ResourceSliceCount {
		return fmt.Sprintf("pool %s has %d of %d slices of generation %d", id, has, of.ResourceSliceCount, of.Generation)
	}
	sets, devices := map[string]string{}, map[string]string{} // the slice of each
	for _, s := range newest {
		for i := range s.object.Spec.SharedCounters {
			set := s.object.Spec.SharedCounters[i].Name
			if other, twice := sets[set]; twice {
				return fmt.Sprintf("pool %s has the counter set %s twice, in the slices %s and %s", id, set, other, s.object.Name)
			}
			sets[set] = s.object.Name
		}
	}
	for _, s := range newest {
		for i := range s.object.Spec.Devices {
			d := &s.object.Spec.Devices[i]
			if other, twice := devices[d.Name]; twice && s.matches(n) {
				return fmt.Sprintf("pool %s has the device %s twice, in the slices %s and %s", id, d.Name, other, s.object.Name)
			}
			if s.matches(n) {
				devices[d.Name] = s.object.Name
			}
			for k := range d.ConsumesCounters {
				if set := d.ConsumesCounters[k].CounterSet; sets[set] == "" {
					return fmt.Sprintf("pool %s has no counter set %s, of which its device %s consumes counters", id, set, d.Name)
				}
			}
		}
	}
	return ""
}

// firstFailed returns the first selector that a device doesn't match, or on which one fails.
func (v *Inventory) firstFailed(driver string, d *resourcev1.Device, selectors []resourcev1.DeviceSelector) *resourcev1.CELDeviceSelector {
	for i := range selectors {
		if selectors[i].CEL == nil {
			continue
		}
		expression := v.expressions.GetOrCompile(selectors[i].CEL.Expression)
		if expression.Error != nil {
			return selectors[i].CEL
		}
		matches, _, err := expression.DeviceMatches(context.Background(), cel.Device{Driver: driver, AllowMultipleAllocations: d.AllowMultipleAllocations, Attributes: d.Attributes, Capacity: d.Capacity})
		if err != nil || !matches {
			return selectors[i].CEL
		}
	}
	return nil
}

// untolerated returns a taint that keeps a device from being allocated.
func untolerated(d *resourcev1.Device, tolerations []resourcev1.DeviceToleration) *resourcev1.DeviceTaint {
	for i := range d.Taints {
		t := &d.Taints[i]
		if t.Effect != resourcev1.DeviceTaintEffectNone &&
			!slices.ContainsFunc(tolerations, func(x resourcev1.DeviceToleration) bool { return resourceclaim.ToleratesTaint(x, *t) }) {
			return t
		}
	}
	return nil
}
