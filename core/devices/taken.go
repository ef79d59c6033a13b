package devices

import (
	"cmp"
	"encoding/binary"
	"maps"
	"reflect"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
)

// What is taken of the devices: by claims that have an allocation. Devices that a claim has for an
// administrator's access aren't taken; of those that several may have, a part is
// (foreachAllocatedDevice of kube-scheduler).

// SetClaim replaces a claim: either of the two may be nil.
// Pointers are the keys: a claim that changes is another object.
func (v *Inventory) SetClaim(now, old *resourcev1.ResourceClaim) {
	if old != nil {
		delete(v.specs, old)
		v.book(old, -1)
	}
	if now != nil {
		v.specs[now] = Digest{} // until Wants is asked for it: of most claims, which have devices, it isn't
		v.book(now, 1)
	}
}

// wanted is what an allocation depends on of a claim.
type wanted struct {
	Requests    []resourcev1.DeviceRequest
	Constraints []resourcev1.DeviceConstraint
}

// Wants returns what stands for the requests and constraints of a claim. It may be called by several goroutines.
// Two claims with the same digest want the same.
func (v *Inventory) Wants(c *resourcev1.ResourceClaim) Digest {
	v.asking.Lock()
	defer v.asking.Unlock()
	d, known := v.specs[c]
	if d == (Digest{}) {
		d = v.digestWanted(&c.Spec.Devices)
	}
	// A claim that isn't in the inventory, such as one that is only thought of, isn't
	// remembered.
	if known {
		v.specs[c] = d
	}
	return d
}

// digestWanted stands for requests and constraints. Most requests are for a number of devices of a class, and those
// for extended resources, which are made anew for each pod, are no others: of these the JSON is made once.
func (v *Inventory) digestWanted(c *resourcev1.DeviceClaim) Digest {
	var short [256]byte
	key, ok := appendCounts(short[:0], c)
	if !ok {
		return digest(wanted{c.Requests, c.Constraints})
	}
	d, ok := v.plain[string(key)]
	if !ok {
		if len(v.plain) >= classesKnown {
			clear(v.plain)
		}
		d = digest(wanted{c.Requests, c.Constraints})
		v.plain[string(key)] = d
	}
	return d
}

// appendCounts appends all that a claim says, if that is how many devices of which classes it wants.
// Anything besides makes it report false, so that no field can be forgotten.
func appendCounts(key []byte, c *resourcev1.DeviceClaim) (_ []byte, ok bool) {
	if c.Constraints != nil || len(c.Requests) == 0 {
		return nil, false
	}
	for i := range c.Requests {
		r := c.Requests[i]
		if r.Exactly == nil {
			return nil, false
		}
		x := *r.Exactly
		key = appendText(key, r.Name)
		key = appendText(key, x.DeviceClassName)
		key = appendText(key, string(x.AllocationMode))
		key = binary.AppendVarint(key, x.Count)
		r.Name, r.Exactly = "", nil
		x.DeviceClassName, x.AllocationMode, x.Count = "", "", 0
		if !reflect.ValueOf(&r).Elem().IsZero() || !reflect.ValueOf(&x).Elem().IsZero() {
			return nil, false
		}
	}
	return key, true
}

// Says returns what stands for what a device class demands of devices. It may be called by several goroutines.
// Classes are compared by their pointers, as claims are.
func (v *Inventory) Says(c *resourcev1.DeviceClass) Digest {
	v.asking.Lock()
	defer v.asking.Unlock()
	d, ok := v.says[c]
	if !ok {
		if len(v.says) >= classesKnown {
			clear(v.says)
		}
		d = digest(c.Spec.Selectors)
		v.says[c] = d
	}
	return d
}

// classesKnown is of how many classes, which are never changed, it is remembered what they demand, and of how many
// claims that count devices.
const classesKnown = 1 << 10

// book enters a claim in the pools of which it has devices (sign is 1), or takes it out (-1).
func (v *Inventory) book(c *resourcev1.ResourceClaim, sign int) {
	if c.Status.Allocation == nil {
		return
	}
	results := c.Status.Allocation.Devices.Results
	for i := range results {
		id := PoolID{results[i].Driver, results[i].Pool}
		// Each pool is entered once, however many of its devices a claim has.
		if slices.ContainsFunc(results[:i], func(r resourcev1.DeviceRequestAllocationResult) bool { return id == PoolID{r.Driver, r.Pool} }) {
			continue
		}
		p := v.pool(id)
		at, found := slices.BinarySearchFunc(p.claims, c, compareClaims)
		switch {
		case sign > 0 && !found:
			p.claims = slices.Insert(p.claims, at, c)
		case sign < 0 && found:
			p.claims = slices.Delete(p.claims, at, at+1)
		}
		// The pool goes with its last slice and claim.
		v.drop(p)
	}
}

// Claims returns the claims that have devices which a node can use. One with devices of two pools is in it
// twice.
func (v *Inventory) Claims(node int32) (out []*resourcev1.ResourceClaim) {
	if node >= 0 && int(node) < len(v.views) {
		for _, p := range v.views[node].pools {
			out = append(out, p.claims...)
		}
	}
	return out
}

// OfOneNode reports whether no two nodes can use devices of a pool of which the claim has some: then they
// are of use on one node only.
func (v *Inventory) OfOneNode(c *resourcev1.ResourceClaim) bool {
	if c.Status.Allocation == nil {
		return true
	}
	for i := range c.Status.Allocation.Devices.Results {
		r := &c.Status.Allocation.Devices.Results[i]
		if p := v.pools[PoolID{r.Driver, r.Pool}]; p != nil && !p.ofOneNode() {
			return false
		}
	}
	return true
}

// ofOneNode reports whether all slices of a pool are for one node.
func (p *pool) ofOneNode() bool {
	for _, s := range p.slices {
		if s.devices != nil || s.where.name == "" || s.where.name != p.slices[0].where.name {
			return false
		}
	}
	return true
}

// compareClaims is the order of claims in a pool.
func compareClaims(a, b *resourcev1.ResourceClaim) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// eachTaken calls f for every device, or part of one, that is taken of a pool.
func (p *pool) eachTaken(f func(*resourcev1.DeviceRequestAllocationResult)) {
	for _, c := range p.claims {
		results := c.Status.Allocation.Devices.Results
		for i := range results {
			r := &results[i]
			if r.Driver == p.Driver && r.Pool == p.Name && (r.AdminAccess == nil || !*r.AdminAccess) {
				f(r)
			}
		}
	}
}

// addTo adds what is taken of a pool to what the library is told.
// The order doesn't matter: sets and sums are built.
func (p *pool) addTo(s *structured.AllocatedState) {
	p.eachTaken(func(r *resourcev1.DeviceRequestAllocationResult) {
		id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
		if r.ShareID == nil {
			s.AllocatedDevices.Insert(id)
			return
		}
		s.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, r.ShareID))
		if r.ConsumedCapacity != nil {
			s.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
		}
	})
}

// nothingTaken returns a state in which all devices are free.
func nothingTaken() structured.AllocatedState {
	return structured.AllocatedState{AllocatedDevices: sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](), AggregatedCapacity: structured.NewConsumedCapacityCollection()}
}

// appendTaken appends what is taken of a pool, without the names of claims and shares. It is asked for
// after each change of a claim, so it makes no sets where devices are taken as a whole.
// Names of claims are left out, so that nodes with the same devices taken are alike.
func (p *pool) appendTaken(key []byte) []byte {
	var few [16]string
	whole, shared := few[:0], false
	p.eachTaken(func(r *resourcev1.DeviceRequestAllocationResult) {
		if r.ShareID != nil {
			shared = true
			return
		}
		whole = append(whole, r.Device)
	})
	slices.Sort(whole)
	for _, name := range slices.Compact(whole) {
		key = appendText(key, name)
	}
	key = append(key, 0)
	if shared {
		key = p.appendShares(key)
	}
	return key
}

// appendShares appends what is taken of devices that several claims may have a part of.
// Amounts are written exactly: two that differ in the last digit are different.
func (p *pool) appendShares(key []byte) []byte {
	s := nothingTaken()
	p.addTo(&s)
	shared := map[string]bool{}
	for id := range s.AllocatedSharedDeviceIDs {
		shared[id.Device.String()] = true
	}
	for _, name := range slices.Sorted(maps.Keys(shared)) {
		key = appendText(key, name)
		used := s.AggregatedCapacity[structured.MakeDeviceID(p.Driver, p.Name, name)]
		for _, capacity := range slices.Sorted(maps.Keys(used)) {
			key = appendText(key, string(capacity))
			key = appendText(key, used[capacity].AsDec().String())
		}
		key = append(key, 0)
	}
	return key
}
