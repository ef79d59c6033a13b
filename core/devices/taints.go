package devices

import (
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// SetRule replaces a DeviceTaintRule: either of the two may be nil.
func (v *Inventory) SetRule(now, old *resourcev1.DeviceTaintRule) {
	for _, o := range []*resourcev1.DeviceTaintRule{old, now} {
		if o == nil {
			continue
		}
		at, found := slices.BinarySearchFunc(v.rules, o.Name, func(r *resourcev1.DeviceTaintRule, name string) int { return strings.Compare(r.Name, name) })
		switch {
		case o == now && !found:
			v.rules = slices.Insert(v.rules, at, o)
		case o == old && found:
			v.rules = slices.Delete(v.rules, at, at+1)
		}
	}
	for _, p := range v.pools {
		if !concerns(old, p) && !concerns(now, p) {
			continue
		}
		for _, s := range p.slices {
			s.taint(v.rules, v.made)
		}
		v.pool(p.PoolID).shape++
	}
}

// concerns reports whether a rule may add a taint to devices of a pool. The rule may be nil.
func concerns(r *resourcev1.DeviceTaintRule, p *pool) bool {
	if r == nil || r.Spec.DeviceSelector == nil {
		return false
	}
	s := r.Spec.DeviceSelector
	return is(s.Driver, p.Driver) && is(s.Pool, p.Name)
}

func is(want *string, is string) bool { return want == nil || *want == is }

// taint finds the devices of a slice as they are with the taints of rules.
func (s *slice) taint(rules []*resourcev1.DeviceTaintRule, made digests) {
	s.tainted = s.object
	for _, r := range rules {
		if !concerns(r, &pool{PoolID: poolOf(s.object)}) {
			continue
		}
		for i := range s.object.Spec.Devices {
			if !is(r.Spec.DeviceSelector.Device, s.object.Spec.Devices[i].Name) {
				continue
			}
			if s.tainted == s.object {
				s.tainted = s.object.DeepCopy()
			}
			d := &s.tainted.Spec.Devices[i]
			d.Taints = append(d.Taints, r.Spec.Taint)
		}
	}
	if s.tainted != s.object {
		s.digest = digestOf(s.tainted)
		return
	}
	s.digest = made.of(s.object)
}
