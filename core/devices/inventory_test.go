package devices_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/devices"
)

// nodes implements devices.Nodes.
type nodes []*v1.Node

func (l nodes) DeviceNode(name string) (int32, *v1.Node) {
	for i, n := range l {
		if n.Name == name {
			return int32(i), n
		}
	}
	return -1, nil
}

func (l nodes) DeviceNodes(f func(int32, *v1.Node)) {
	for i, n := range l {
		f(int32(i), n)
	}
}

// classes implements devices.Classes.
type classes map[string]*resourcev1.DeviceClass

func (c classes) Get(name string) (*resourcev1.DeviceClass, error) { return c[name], nil }

func (c classes) List() ([]*resourcev1.DeviceClass, error) { return nil, nil }

var gpus = classes{"gpus": {ObjectMeta: metav1.ObjectMeta{Name: "gpus"}, Spec: resourcev1.DeviceClassSpec{
	Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.example"`}}}}}}

// published returns a slice of a node's pool with some devices.
func published(node string, count int) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node + "-gpus"}}
	s.Spec = resourcev1.ResourceSliceSpec{Driver: "gpu.example", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}}
	for i := range count {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("gpu-", i)})
	}
	return s
}

// claim returns a claim for some GPUs.
func claim(name string, count int64) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpus",
		AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}}}
	return c
}

var how = devices.How{Steps: 1000}

// TestEqualNodesAreAskedAboutOnce takes devices of nodes that are alike, and counts the questions.
func TestEqualNodesAreAskedAboutOnce(t *testing.T) {
	var list nodes
	for i := range 100 {
		list = append(list, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}})
	}
	v := devices.NewInventory(list, devices.Features(compat.Newest))
	for _, n := range list {
		v.SetSlice(published(n.Name, 8), nil)
	}
	v.Settle()
	if got := len(v.Changed()); got != 100 {
		t.Fatalf("%d nodes have other devices, want 100", got)
	}
	pair := []*resourcev1.ResourceClaim{claim("pair", 2)}
	q := v.Question([]byte("pair"))
	for i, n := range list {
		if a := v.Ask(q, int32(i), n, pair, gpus, how); !a.Fits || a.Failed {
			t.Fatalf("two GPUs on %s: %+v", n.Name, a)
		}
	}
	if got := v.Asks(); got != 1 {
		t.Errorf("the library was asked %d times about nodes that are alike, want 1", got)
	}
	// Every other node loses all devices but one.
	for i := 0; i < len(list); i += 2 {
		c := claim(fmt.Sprint("c", i), 7)
		out, err := v.Allocate(v.Question([]byte("seven")), int32(i), list[i], []*resourcev1.ResourceClaim{c}, gpus, how)
		if err != nil || len(out) != 1 || len(out[0].Devices.Results) != 7 {
			t.Fatalf("seven GPUs on %s: %v %v", list[i].Name, out, err)
		}
		if pool := out[0].Devices.Results[0].Pool; pool != list[i].Name {
			t.Fatalf("devices of pool %s are allocated on %s", pool, list[i].Name)
		}
		c.Status.Allocation = &out[0]
		v.SetClaim(c, nil)
		v.Settle()
		if got := v.Changed(); len(got) != 1 || got[0] != int32(i) {
			t.Fatalf("devices of %s are taken, and changed are %v", list[i].Name, got)
		}
	}
	for i, n := range list {
		if a := v.Ask(q, int32(i), n, pair, gpus, how); a.Fits != (i%2 == 1) {
			t.Errorf("two GPUs on %s: %+v", n.Name, a)
		}
	}
	if got := v.Asks(); got != 3 {
		t.Errorf("the library was asked %d times, want 3: for two devices of two kinds of nodes, and once for seven", got)
	}
}

// TestAllocationsReadNoSlices: taking a device of a pool that every node sees has no slice read again, for
// any node, however large the pool is; and what is taken is read once, not by node.
func TestAllocationsReadNoSlices(t *testing.T) {
	const many = 50
	var all nodes
	for i := range many {
		all = append(all, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}})
	}
	v := devices.NewInventory(all, devices.Features(compat.V37))
	for i := range 8 {
		s := published("n0", 128)
		s.Name, s.Spec.NodeName, s.Spec.AllNodes, s.Spec.Pool = fmt.Sprint("fabric-", i), nil, new(true), resourcev1.ResourcePool{Name: "fabric", ResourceSliceCount: 8}
		for k := range s.Spec.Devices {
			s.Spec.Devices[k].Name = fmt.Sprint("d", i, "-", k)
		}
		v.SetSlice(s, nil)
	}
	v.Settle()
	before, content := v.Readings(), v.Content(0)
	for i := range 3 {
		c := claim(fmt.Sprint("c", i), 1)
		c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: "gpu", Driver: "gpu.example", Pool: "fabric", Device: fmt.Sprint("d0-", i)}}}}
		v.SetClaim(c, nil)
		v.Settle()
	}
	if got := v.Readings() - before; got != 3 {
		t.Errorf("%d readings for three allocations, want one each", got)
	}
	if len(v.Changed()) != many || v.Content(0) == content || v.Content(0) != v.Content(many-1) {
		t.Errorf("%d nodes have another content, want all of %d, and one for all", len(v.Changed()), many)
	}
}

// BenchmarkAllocateFromEveryNodesPool takes a device of a pool of a thousand that 5,000 nodes see, and
// gives it back.
func BenchmarkAllocateFromEveryNodesPool(b *testing.B) {
	var all nodes
	for i := range 5000 {
		all = append(all, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}})
	}
	v := devices.NewInventory(all, devices.Features(compat.V37))
	for i := range 8 {
		s := published("n0", 125)
		s.Name, s.Spec.NodeName, s.Spec.AllNodes, s.Spec.Pool = fmt.Sprint("fabric-", i), nil, new(true), resourcev1.ResourcePool{Name: "fabric", ResourceSliceCount: 8}
		v.SetSlice(s, nil)
	}
	v.Settle()
	c := claim("c", 1)
	c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
		{Request: "gpu", Driver: "gpu.example", Pool: "fabric", Device: "gpu-0"}}}}
	for b.Loop() {
		v.SetClaim(c, nil)
		v.Settle()
		v.SetClaim(nil, c)
		v.Settle()
	}
}
