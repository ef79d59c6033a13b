package api

import (
	"cmp"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/explain"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// This file answers devices. The core only hands out the objects, which nobody changes; counting is done outside of
// its goroutine, in O(devices + claims).
//
// What must hold: a claim belongs to its namespace as a pod does, and is hidden as one. Pools are the cluster's.

// devicePool is the name of a pool. Two drivers may each have a pool of one name.
type devicePool struct{ driver, pool string }

// devices answers devices: ?limit= and ?continue= are of the claims.
func (a *API) devices(r *request) (any, error) {
	x, at, err := a.questions.of(r.Context(), "devices", func(c *core.Core) (any, error) { return c.View().Devices(), nil })
	if err != nil {
		return nil, err
	}
	d := x.(explain.Devices)
	out := v1alpha1.DeviceList{List: v1alpha1.List{At: at, Total: len(d.Claims)}, Items: pools(&d), Claims: []v1alpha1.DeviceClaim{}}
	// Hidden claims are counted, as hidden pods are, so that a sum of claims and the devices of pools agree.
	var found []*resourcev1.ResourceClaim
	for _, c := range d.Claims {
		if r.viewer.sees(c.Namespace) {
			found = append(found, c)
		} else {
			out.Hidden++
		}
	}
	found, err = page(r.query, found, func(c **resourcev1.ResourceClaim) string { return (*c).Namespace + "\x00" + (*c).Name }, &out.List)
	if err != nil {
		return nil, badRequest{err}
	}
	for _, c := range found {
		claim := v1alpha1.DeviceClaim{Namespace: c.Namespace, Name: c.Name, Allocated: c.Status.Allocation != nil}
		for _, res := range allocated(c) {
			claim.Devices = append(claim.Devices, res.Driver+"/"+res.Pool+"/"+res.Device)
		}
		for _, p := range c.Status.ReservedFor {
			claim.Pods = append(claim.Pods, p.Name) // of the claim's namespace
		}
		out.Claims = append(out.Claims, claim)
	}
	return out, nil
}

// pools returns the pools of devices, by driver and pool. Of a pool the slices of its newest generation
// count.
func pools(d *explain.Devices) []v1alpha1.DevicePool {
	// While a driver replaces the slices of a pool, both generations are there for a moment. Devices of both would be
	// counted twice, and the allocator reads the newest alone.
	newest := map[devicePool]int64{}
	// Two walks: slices come in no order, so that an older generation may come first.
	for _, s := range d.Slices {
		key := devicePool{s.Spec.Driver, s.Spec.Pool.Name}
		newest[key] = max(newest[key], s.Spec.Pool.Generation)
	}
	by := map[devicePool]*v1alpha1.DevicePool{}
	for _, s := range d.Slices {
		key := devicePool{s.Spec.Driver, s.Spec.Pool.Name}
		if s.Spec.Pool.Generation < newest[key] {
			continue
		}
		if by[key] == nil {
			by[key] = &v1alpha1.DevicePool{Driver: key.driver, Pool: key.pool}
		}
		// A pool of the network has no node.
		if s.Spec.NodeName != nil {
			by[key].Node = *s.Spec.NodeName
		}
		by[key].Devices += len(s.Spec.Devices)
	}
	for _, c := range d.Claims {
		for _, r := range allocated(c) {
			// A device may be taken whose slice is gone: its driver was removed, or restarts.
			if p := by[devicePool{r.Driver, r.Pool}]; p != nil {
				p.Allocated++
			}
		}
	}
	out := []v1alpha1.DevicePool{}
	for _, p := range by { // sorted below
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b v1alpha1.DevicePool) int {
		return cmp.Or(strings.Compare(a.Driver, b.Driver), strings.Compare(a.Pool, b.Pool))
	})
	return out
}

// allocated returns the devices that a claim holds, one entry for each device of each request; none while the claim waits.
// Admin access is among them, though it takes a device from nobody.
func allocated(c *resourcev1.ResourceClaim) []resourcev1.DeviceRequestAllocationResult {
	if c.Status.Allocation == nil {
		return nil
	}
	return c.Status.Allocation.Devices.Results
}
