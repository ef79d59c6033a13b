package devices_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/devices"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyTheNewestGenerationCounts: slices of a pool come, change and go with any generations. As many devices
// count as the slices of the newest one have, and allocations are of these; the inventory is as one that is made of
// the slices that are left.
func TestPropertyTheNewestGenerationCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := nodes{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}}
		v := devices.NewInventory(list, devices.Features(compat.Newest))
		are := map[int]*resourcev1.ResourceSlice{}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			k := testkit.Uniform(t, 6, "slice")
			var now *resourcev1.ResourceSlice
			if testkit.Uniform(t, 4, "goes") > 0 {
				now = testkit.ResourceSlice(fmt.Sprint("s", k), "gpu.example", "n").OnNode("n").Generation(int64(testkit.Uniform(t, 5, "generation"))).
					Of(int64(1 + testkit.Uniform(t, 3, "of"))).Devices(testkit.Device(fmt.Sprint("d", k))).Obj()
			}
			v.SetSlice(now, are[k])
			if are[k] = now; now == nil {
				delete(are, k)
			}
			v.Settle()
			fresh, newest := devices.NewInventory(list, devices.Features(compat.Newest)), int64(-1)
			for _, s := range are {
				fresh.SetSlice(s, nil)
				newest = max(newest, s.Spec.Pool.Generation)
			}
			fresh.Settle()
			if v.Digest(0) != fresh.Digest(0) {
				t.Fatalf("another inventory than of the slices %v", are)
			}
			want := int64(0)
			for _, s := range are {
				if s.Spec.Pool.Generation == newest {
					want++
				}
			}
			if got := v.CountOn(0, list[0], gpus["gpus"]); got != want {
				t.Fatalf("%d devices count, want %d of generation %d of %v", got, want, newest, are)
			}
		}
	})
}

// TestTenThousandDevices: a fabric's pool has 10,112 devices, which every node sees, and no node a class of its own.
// However many nodes there are the library is asked once; it tries as many devices as it may, and says so. A claim that
// can be served is.
func TestTenThousandDevices(t *testing.T) {
	const many, slices = 100, 79
	var list nodes
	for i := range many {
		list = append(list, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}})
	}
	v := devices.NewInventory(list, devices.Features(compat.Newest))
	for i := range slices {
		s := testkit.ResourceSlice(fmt.Sprintf("fabric-%02d", i), "gpu.example", "fabric").Everywhere().Of(slices)
		for k := range resourcev1.ResourceSliceMaxDevices {
			name := fmt.Sprintf("d%02d-%03d", i, k)
			s.Devices(testkit.Device(name).Attr("serial", name))
		}
		v.SetSlice(s.Obj(), nil)
	}
	v.Settle()
	if got := v.Readings(); got > (slices+1)*many {
		t.Errorf("%d readings of %d slices for %d nodes", got, slices, many)
	}
	ask := func(c *resourcev1.ResourceClaim, steps int) (fits, failed int) {
		q := v.Question([]byte(c.Name))
		for i, n := range list {
			a := v.Ask(q, int32(i), n, []*resourcev1.ResourceClaim{c}, gpus, devices.How{Steps: steps})
			if a.Fits {
				fits++
			}
			if a.Failed {
				failed++
			}
		}
		return fits, failed
	}
	// Two devices with one serial number are looked for in vain, among 50 million pairs.
	alike, serial := claim("alike", 2), resourcev1.FullyQualifiedName("gpu.example/serial")
	alike.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: &serial}}
	if fits, failed := ask(alike, 1000); fits != 0 || failed != many {
		t.Errorf("%d fit, %d failed, want that too many combinations are tried on each node", fits, failed)
	}
	none := claim("none", 1)
	none.Spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "none"`}}}
	if fits, failed := ask(none, 1000); fits != 0 || failed != 0 {
		t.Errorf("%d fit, %d failed, want none", fits, failed)
	}
	if fits, failed := ask(claim("one", 1), 1000); fits != many || failed != 0 {
		t.Errorf("%d fit, %d failed, want a device on each node", fits, failed)
	}
	if got := v.Asks(); got != 3 {
		t.Errorf("the library was asked %d times, want once for each claim", got)
	}
}
