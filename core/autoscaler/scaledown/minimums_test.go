package scaledown_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestMinimums takes nodes of 4 cores and 8 GiB one by one, in order, until each says what
// keeps it: "-" for a node that goes.
func TestMinimums(t *testing.T) {
	const group, cores = "NodeGroupMinSizeReached: its node group g is at its minimum size of 1", "MinimalResourceLimitExceeded: the cluster minimum is 8 cpu"
	total := func(name v1.ResourceName, least int64) autoscaler.Total {
		return autoscaler.Total{Resource: name, Min: least, Max: 1 << 50}
	}
	leaving := func(n *testkit.NodeBuilder) { n.Taint(autoscaler.ToBeDeletedTaint, "1", v1.TaintEffectNoSchedule) }
	for _, x := range []struct {
		name    string
		target  int // of the group, which has a minimum of 1
		leaving int
		third   func(*testkit.NodeBuilder) // how the last of the three nodes differs
		totals  []autoscaler.Total
		want    [3]string // of n0, n1, n2
	}{
		{name: "two of three", target: 3, want: [3]string{"-", "-", group}},
		{name: "one is being removed", target: 3, leaving: 1, want: [3]string{"-", group, group}},
		{name: "one is coming", target: 4, want: [3]string{"-", "-", "-"}},
		{name: "the group has too few", target: 0, want: [3]string{group, group, group}},
		{name: "8 cores stay", target: 9, totals: []autoscaler.Total{total(v1.ResourceCPU, 8)}, want: [3]string{"-", cores, cores}},
		{name: "one has none of the cores", target: 9, totals: []autoscaler.Total{total(v1.ResourceCPU, 8)}, third: func(n *testkit.NodeBuilder) { n.Alloc("cpu", "0") }, want: [3]string{cores, cores, "-"}},
		{name: "one leaves", target: 9, totals: []autoscaler.Total{total(v1.ResourceCPU, 8)}, third: leaving, want: [3]string{cores, cores, cores}},
		{name: "one is virtual", target: 9, totals: []autoscaler.Total{total(v1.ResourceCPU, 8)}, third: func(n *testkit.NodeBuilder) { n.Label("type", "virtual-kubelet") }, want: [3]string{cores, cores, cores}},
		{name: "memory", target: 9, totals: []autoscaler.Total{total(v1.ResourceCPU, 0), total(v1.ResourceMemory, 20<<30)},
			want: [3]string{"MinimalResourceLimitExceeded: the cluster minimum is 20Gi memory", "MinimalResourceLimitExceeded: the cluster minimum is 20Gi memory", "MinimalResourceLimitExceeded: the cluster minimum is 20Gi memory"}},
		{name: "GPUs", target: 9, totals: []autoscaler.Total{total("nvidia.com/gpu", 2)}, third: func(n *testkit.NodeBuilder) { n.Alloc("nvidia.com/gpu", "3") },
			want: [3]string{"-", "-", "MinimalResourceLimitExceeded: the cluster minimum is 2 nvidia.com/gpu"}},
		{name: "GPUs that a device class has, three on each node", target: 9, totals: []autoscaler.Total{total("example.com/gpu", 5)},
			want: [3]string{"-", "MinimalResourceLimitExceeded: the cluster minimum is 5 example.com/gpu", "MinimalResourceLimitExceeded: the cluster minimum is 5 example.com/gpu"}},
	} {
		s := cluster.New(cluster.NewSchema())
		s.SetObject(testkit.DeviceClass("gpus", "example.com/gpu", `device.driver == "gpu.example"`))
		s.SetGroup("g", &cluster.NodeGroup{ID: "g", Min: 1, Max: 10, Target: x.target})
		for i := range 3 {
			n := aNode(fmt.Sprint("n", i))
			if i == 2 && x.third != nil {
				x.third(n)
			}
			s.SetNode(s.Schema.ParseNode(n.Obj(), "g"))
			s.SetObject(testkit.NodeSlice("gpu.example", n.Name).Devices(testkit.NamedDevices("a", "b", "c")...).Obj())
		}
		req := autoscaler.Request{Limits: autoscaler.Limits{Totals: x.totals}, ScaleDown: &autoscaler.ScaleDown{Leaving: map[string]int{"g": x.leaving}}}
		m := scaledown.NewMinimums(s, &req)
		var got [3]string
		for i := range got {
			n := s.NodeByName(fmt.Sprint("n", i))
			k := m.May(n)
			if got[i] = keptText(k); k == nil {
				got[i] = "-"
				m.Remove(n)
			}
		}
		if got != x.want {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}
