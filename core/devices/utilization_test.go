package devices_test

import (
	"math"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/devices"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestUtilization takes devices of a node, and says what share of which pool counts. The shares of
// pools with counters are those that Cluster Autoscaler's examples come to.
func TestUtilization(t *testing.T) {
	whole := func() *testkit.ResourceSliceBuilder {
		return testkit.NodeSlice("gpu.example", "n").Devices(testkit.NamedDevices("a", "b", "c", "d")...)
	}
	part := func(name, set, memory, cores string) *testkit.DeviceBuilder {
		return testkit.Device(name).Consumes(set, "memory", memory, "cores", cores)
	}
	mixed := []*testkit.ResourceSliceBuilder{
		testkit.ResourceSlice("counters", "gpu.example", "n").OnNode("n").Of(2).Counters("x", "memory", "10", "cores", "10").Counters("y", "memory", "10", "cores", "10", "none", "0"),
		testkit.ResourceSlice("devices", "gpu.example", "n").OnNode("n").Of(2).Devices(testkit.Device("whole"), testkit.Device("other"),
			part("x8", "x", "8", "5"), part("x1", "x", "1", "1"), part("y6", "y", "6", "1")),
	}
	for _, c := range []struct {
		name   string
		slices []*testkit.ResourceSliceBuilder
		taken  []string // devices of the driver gpu.example
		share  float64
		pool   string
	}{
		{"no devices", nil, nil, 0, ""},
		{"of others", []*testkit.ResourceSliceBuilder{testkit.NodeSlice("gpu.example", "m").Devices(testkit.Device("a")), testkit.ResourceSlice("s", "nic.example", "fabric").Everywhere().Devices(testkit.Device("a"))}, []string{"a"}, 0, ""},
		{"none taken", []*testkit.ResourceSliceBuilder{whole()}, nil, 0, "gpu.example/n"},
		{"some taken", []*testkit.ResourceSliceBuilder{whole()}, []string{"a", "c", "c", "gone"}, 0.5, "gpu.example/n"},
		{"the pool that is taken most", []*testkit.ResourceSliceBuilder{whole(), testkit.NodeSlice("nic.example", "n").Devices(testkit.Device("a"))}, []string{"a"}, 0.25, "gpu.example/n"},
		{"equal pools", []*testkit.ResourceSliceBuilder{whole(), testkit.NodeSlice("nic.example", "n").Devices(testkit.Device("a"))}, nil, 0, "nic.example/n"},
		{"a newer generation", []*testkit.ResourceSliceBuilder{whole(), testkit.ResourceSlice("new", "gpu.example", "n").OnNode("n").Generation(2).Devices(testkit.NamedDevices("a", "b")...)}, []string{"a"}, 0.5, "gpu.example/n"},
		{"a slice is missing", []*testkit.ResourceSliceBuilder{whole().Of(2)}, nil, 1, "gpu.example/n"},
		{"partitions: the mean of each set's largest", mixed, []string{"x8", "y6"}, 0.7, "gpu.example/n"},
		{"partitions of one set", mixed, []string{"x8", "x1"}, 0.45, "gpu.example/n"},
		{"whole devices beside partitions", mixed, []string{"whole", "x8"}, (0.4*2 + 0.5*2) / 4, "gpu.example/n"},
		{"only whole devices", mixed, []string{"whole"}, 0.5, "gpu.example/n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := devices.NewInventory(nodes{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, {ObjectMeta: metav1.ObjectMeta{Name: "m"}}}, devices.Features(compat.Newest))
			for _, s := range c.slices {
				v.SetSlice(s.Obj(), nil)
			}
			for i, d := range c.taken {
				v.SetClaim(testkit.ResourceClaim(string(rune('a'+i))).Allocated(testkit.Allocation("r", "gpu.example", "n", d)).Obj(), nil)
			}
			admin := testkit.ResourceClaim("admin").Allocated(testkit.Allocation("r", "gpu.example", "n", "d")).Obj()
			admin.Status.Allocation.Devices.Results[0].AdminAccess = new(true)
			v.SetClaim(admin, nil)
			v.Settle()
			share, of, ok := v.Utilization("n")
			pool := ""
			if ok {
				pool = of.Driver + "/" + of.Name
			}
			if math.Abs(share-c.share) > 1e-9 || pool != c.pool {
				t.Errorf("got %g of %q, want %g of %q", share, pool, c.share, c.pool)
			}
		})
	}
}
