package door_test

import (
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/step"
)

// TestDevicesAreBounded: of each list of devices the bound is accepted, and one more is refused with an
// error that names the object.
func TestDevicesAreBounded(t *testing.T) {
	slice := func(change func(s *resourcev1.ResourceSlice, n int)) func(int) cluster.Object {
		return func(n int) cluster.Object {
			s := &resourcev1.ResourceSlice{}
			s.Name = "x"
			s.Spec.Devices = make([]resourcev1.Device, 1)
			s.Spec.SharedCounters = make([]resourcev1.CounterSet, 1)
			change(s, n)
			return s
		}
	}
	claim := func(change func(c *resourcev1.ResourceClaim, n int)) func(int) cluster.Object {
		return func(n int) cluster.Object {
			c := &resourcev1.ResourceClaim{}
			c.Namespace, c.Name = "ns", "x"
			c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Exactly: &resourcev1.ExactDeviceRequest{}}}
			c.Status.Allocation = &resourcev1.AllocationResult{}
			change(c, n)
			return c
		}
	}
	expression := func(n int) []resourcev1.DeviceSelector {
		return []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: strings.Repeat("x", n)}}}
	}
	for _, c := range []struct {
		what  string
		bound int
		of    func(n int) cluster.Object
	}{
		{"devices", 128, slice(func(s *resourcev1.ResourceSlice, n int) { s.Spec.Devices = make([]resourcev1.Device, n) })},
		{"counter sets", resourcev1.ResourceSliceMaxCounterSets, slice(func(s *resourcev1.ResourceSlice, n int) { s.Spec.SharedCounters = make([]resourcev1.CounterSet, n) })},
		{"attributes", 32, slice(func(s *resourcev1.ResourceSlice, n int) {
			s.Spec.Devices[0].Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}
			for i := range n {
				s.Spec.Devices[0].Attributes[resourcev1.QualifiedName(strings.Repeat("a", i+1))] = resourcev1.DeviceAttribute{}
			}
		})},
		{"taints", resourcev1.DeviceTaintsMaxLength, slice(func(s *resourcev1.ResourceSlice, n int) { s.Spec.Devices[0].Taints = make([]resourcev1.DeviceTaint, n) })},
		{"pool's name", door.MaxName, slice(func(s *resourcev1.ResourceSlice, n int) { s.Spec.Pool.Name = strings.Repeat("p", n) })},
		{"requests", 32, claim(func(c *resourcev1.ResourceClaim, n int) {
			c.Spec.Devices.Requests = make([]resourcev1.DeviceRequest, n)
		})},
		{"alternatives", 8, claim(func(c *resourcev1.ResourceClaim, n int) {
			c.Spec.Devices.Requests[0].FirstAvailable = make([]resourcev1.DeviceSubRequest, n)
		})},
		{"reservations", 256, claim(func(c *resourcev1.ResourceClaim, n int) {
			c.Status.ReservedFor = make([]resourcev1.ResourceClaimConsumerReference, n)
		})},
		{"allocated devices", 32, claim(func(c *resourcev1.ResourceClaim, n int) {
			c.Status.Allocation.Devices.Results = make([]resourcev1.DeviceRequestAllocationResult, n)
		})},
		{"expressions", door.MaxExpression, claim(func(c *resourcev1.ResourceClaim, n int) { c.Spec.Devices.Requests[0].Exactly.Selectors = expression(n) })},
		{"expressions", door.MaxExpression, func(n int) cluster.Object {
			c := &resourcev1.DeviceClass{}
			c.Name, c.Spec.Selectors = "x", expression(n)
			return c
		}},
	} {
		for extra := range 2 {
			var told []string
			_, ok := door.Admit(step.ObjectSet{Object: c.of(c.bound + extra)}, func(p door.Problem) { told = append(told, p.Error()) })
			if ok != (extra == 0) || len(told) != extra || extra == 1 && (!strings.Contains(told[0], c.what) || !strings.Contains(told[0], "x: ")) {
				t.Errorf("%d of %s: admitted %t, told %q", c.bound+extra, c.what, ok, told)
			}
		}
	}
}
