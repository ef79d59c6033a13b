package devices_test

import (
	"slices"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/devices"
)

// TestUsual: what claims take is counted by units, wherever a node has them to itself.
func TestUsual(t *testing.T) {
	list := nodes{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, {ObjectMeta: metav1.ObjectMeta{Name: "m"}}}
	v := devices.NewInventory(list, devices.Features(compat.Newest))
	yes := true
	s := published("n", 4)
	s.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "set", Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse("80Gi")}, "slices": {Value: resource.MustParse("7")}}}}
	s.Spec.Devices[2].AllowMultipleAllocations = &yes
	s.Spec.Devices[2].Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("10Gi")}}
	s.Spec.Devices[3].ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "set", Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse("10Gi")}, "slices": {Value: resource.MustParse("1")}}}}
	everywhere := published("net", 1)
	everywhere.Spec.NodeName, everywhere.Spec.AllNodes = nil, &yes
	share := types.UID("s")
	result := func(pool, device string) resourcev1.DeviceRequestAllocationResult {
		return resourcev1.DeviceRequestAllocationResult{Request: "gpu", Driver: "gpu.example", Pool: pool, Device: device}
	}
	part := result("n", "gpu-2")
	part.ShareID, part.ConsumedCapacity = &share, map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse("2500Mi")}
	admin := result("n", "gpu-1")
	admin.AdminAccess = &yes
	v.FollowWorkload()
	for _, c := range []struct {
		name    string
		results []resourcev1.DeviceRequestAllocationResult
	}{{"pair", []resourcev1.DeviceRequestAllocationResult{result("n", "gpu-0"), result("n", "gpu-1")}}, {"part", []resourcev1.DeviceRequestAllocationResult{part}},
		{"partition", []resourcev1.DeviceRequestAllocationResult{result("n", "gpu-3")}}, {"admin", []resourcev1.DeviceRequestAllocationResult{admin}},
		{"network", []resourcev1.DeviceRequestAllocationResult{result("net", "gpu-0")}}, {"gone", []resourcev1.DeviceRequestAllocationResult{result("n", "gone")}}} {
		x := claim(c.name, 1)
		x.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: c.results}}
		v.SetClaim(x, nil)
		v.Settle()
	}
	if got := v.Usual(); got != nil {
		t.Errorf("before devices are published %v is usual, want nothing", got)
	}
	v.SetSlice(s, nil)
	v.SetSlice(everywhere, nil)
	v.Settle()
	want := []devices.Kind{{Driver: "gpu.example", Units: 2, Amount: 1000}, {Driver: "gpu.example", Units: 1, Amount: 245}, {Driver: "gpu.example", Units: 1, Amount: 143}}
	if got := v.Usual(); !slices.Equal(got, want) || !v.Turned() {
		t.Errorf("usual is %v (turned: %t), want %v", got, v.Turned(), want)
	}
	if v.Settle(); v.Turned() {
		t.Error("nothing has changed, and what is usual has")
	}
	// On n the pair is taken, and nobody loses; the others lose what is left of their units.
	for _, c := range []struct {
		uses []devices.Use
		want int64
	}{{nil, 0}, {[]devices.Use{{Pool: 0, Unit: 0, Amount: 1000}}, 0}, {[]devices.Use{{Pool: 0, Unit: 2, Amount: 245}}, 245/3 + 2*143/3}} {
		if got := v.Lost(0, c.uses, devices.Share{Before: devices.Shares, After: devices.Shares}); got < c.want-2 || got > c.want+2 {
			t.Errorf("the usual claims lose %d by %v, want %d", got, c.uses, c.want)
		}
	}
	if got := v.Lost(1, nil, devices.Share{Before: devices.Shares}); got != 0 {
		t.Errorf("they lose %d on a node without devices of its own", got)
	}
}
