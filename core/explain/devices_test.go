package explain_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// newest is a selector that devices with an old driver don't match.
const newest = `device.attributes["gpu.example"].driverVersion.isGreaterThan(semver("1.9.0"))`

// TestExplainsWhatDevicesLack: of each node that can't give a pod its devices it is said what is against
// them; nodes of a group that lack the same are counted together.
func TestExplainsWhatDevicesLack(t *testing.T) {
	c := newCore(t, core.DefaultConfig())
	version := func(d *testkit.DeviceBuilder, v string) *testkit.DeviceBuilder {
		return d.Attr("driverVersion", testkit.Version(v))
	}
	d0, d1 := version(testkit.Device("d0"), "2.1.0"), version(testkit.Device("d1"), "1.2.0")
	tainted := version(testkit.Device("d0"), "2.1.0").Taint("broken", "", "NoSchedule")
	node := func(name string) step.NodeSet {
		return step.NodeSet{Node: testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj()}
	}
	in := []step.Input{step.ObjectSet{Object: testkit.DeviceClass("gpus", "", `device.driver == "gpu.example"`)},
		node("bare"), node("full"), node("full-too"), node("tainted"),
		step.ObjectSet{Object: testkit.NodeSlice("gpu.example", "full").Devices(d0, d1).Obj()},
		step.ObjectSet{Object: testkit.NodeSlice("gpu.example", "full-too").Devices(d0, d1).Obj()},
		step.ObjectSet{Object: testkit.NodeSlice("gpu.example", "tainted").Devices(tainted).Obj()}}
	for _, n := range []string{"full", "full-too"} {
		in = append(in, step.ObjectSet{Object: testkit.ResourceClaim("of-"+n, testkit.Request("q", "gpus")).Allocated(testkit.Allocation("q", "gpu.example", n, "d0")).OnNode(n).ReservedFor("on-" + n).Obj()},
			step.PodSet{Pod: testkit.Pod("on-" + n).Claims("of-" + n).On(n).Obj()})
	}
	in = append(in, step.ObjectSet{Object: testkit.ResourceClaim("picky", testkit.Request("q", "gpus").Where(newest)).Obj()}, step.PodSet{Pod: testkit.Pod("picky").Claims("picky").Obj()})
	c.Step(time.Unix(1, 0), door.Must(in...)...)
	x, _ := c.View().Explain("default", "picky")
	want := []explain.Detail{
		{Nodes: 2, Node: "full", Text: "claim picky, request q: 1 of 2 devices of class gpus taken; d1 (driverVersion 1.2.0): no match of " + newest},
		{Nodes: 1, Node: "tainted", Text: "claim picky, request q: 0 of 1 device of class gpus taken; d0: the taint broken=:NoSchedule isn't tolerated"},
		{Nodes: 1, Node: "bare", Text: "claim picky, request q: there is no device of class gpus"},
	}
	if x.Outcome != "Waits" || !reflect.DeepEqual(x.Details, want) {
		t.Errorf("%s: %+v\nwant %+v", x.Outcome, x.Details, want)
	}
	if want := "0/4 nodes are available: 4 cannot allocate all claims."; x.Message != want {
		t.Errorf("message %q, want kube-scheduler's", x.Message)
	}
	// A pod that is placed has its devices, and its node could take it again.
	x, _ = c.View().Explain("default", "on-full")
	if want := []explain.DeviceOf{{Claim: "of-full", Request: "q", Driver: "gpu.example", Pool: "full", Device: "d0"}}; !reflect.DeepEqual(x.Devices, want) {
		t.Errorf("devices %+v, want %+v", x.Devices, want)
	}
	if len(x.Candidates) == 0 || x.Candidates[0].Node != "full" {
		t.Errorf("candidates %+v, want its own node first", x.Candidates)
	}
}

// TestExplainsWhatGroupsAtALimitLack: of a group that may not grow it is said, beside the limit, what a new node
// would lack in devices. More nodes of it would be of no use.
func TestExplainsWhatGroupsAtALimitLack(t *testing.T) {
	c := newCore(t, autoscaling(func(*core.Autoscale) {}))
	group := func(id string, version string) nodegroup.Group {
		n := testkit.Node(id).Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj()
		return nodegroup.Group{ID: id, Max: 0, Template: n, Devices: []resourcev1.ResourceSlice{
			*testkit.NodeSlice("gpu.example", id).Devices(testkit.Device("d0").Attr("driverVersion", testkit.Version(version))).Obj()}}
	}
	c.Step(time.Unix(1, 0), door.Must(step.ObjectSet{Object: testkit.DeviceClass("gpus", "", `device.driver == "gpu.example"`)},
		step.ObjectSet{Object: testkit.ResourceClaim("picky", testkit.Request("q", "gpus").Where(newest)).Obj()},
		step.PodSet{Pod: testkit.Pod("picky").Claims("picky").Obj()},
		step.GroupsSet{Groups: []nodegroup.Group{group("new", "2.0.0"), group("old", "1.2.0")}})...)
	x, _ := c.View().Explain("default", "picky")
	want := []explain.GroupAnswer{
		{Group: "new", Answer: explain.Limited, Reasons: []string{"max node group size reached"}},
		{Group: "old", Answer: explain.Limited, Reasons: []string{"max node group size reached", "cannot allocate all claims"}, Plugin: "DynamicResources",
			Detail: "an empty node: claim picky, request q: 0 of 1 device of class gpus taken; d0 (driverVersion 1.2.0): no match of " + newest},
	}
	if x.Scaling == nil || !reflect.DeepEqual(x.Scaling.Groups, want) {
		t.Errorf("groups are explained as %+v\nwant %+v", x.Scaling, want)
	}
}

// TestExplainsWhichPoolsAreBroken: of slices that contradict each other, or aren't all there, the allocator takes
// nothing. It is said which pool that is, and of which slices.
func TestExplainsWhichPoolsAreBroken(t *testing.T) {
	for _, c := range []struct {
		name   string
		slices func() []*resourcev1.ResourceSlice
		want   string
	}{
		{"a slice is missing", func() []*resourcev1.ResourceSlice {
			return []*resourcev1.ResourceSlice{testkit.NodeSlice("gpu.example", "n").Of(2).Generation(7).Devices(testkit.Device("d0")).Obj()}
		}, "d0: can't be allocated, pool gpu.example/n has 1 of 2 slices of generation 7"},
		{"there is one too many", func() []*resourcev1.ResourceSlice {
			return []*resourcev1.ResourceSlice{testkit.ResourceSlice("s0", "gpu.example", "n").OnNode("n").Devices(testkit.Device("d0")).Obj(),
				testkit.ResourceSlice("s1", "gpu.example", "n").OnNode("n").Devices(testkit.Device("d1")).Obj()}
		}, "d0, d1: can't be allocated, pool gpu.example/n has 2 of 1 slices of generation 1"},
		{"two have one device", func() []*resourcev1.ResourceSlice {
			return []*resourcev1.ResourceSlice{testkit.ResourceSlice("s0", "gpu.example", "n").OnNode("n").Of(2).Devices(testkit.Device("d0")).Obj(),
				testkit.ResourceSlice("s1", "gpu.example", "n").OnNode("n").Of(2).Devices(testkit.Device("d0")).Obj()}
		}, "d0, d0: can't be allocated, pool gpu.example/n has the device d0 twice, in the slices s0 and s1"},
		{"two have one set of counters", func() []*resourcev1.ResourceSlice {
			return []*resourcev1.ResourceSlice{testkit.ResourceSlice("s0", "gpu.example", "n").OnNode("n").Of(3).Counters("set", "memory", "8Gi").Obj(),
				testkit.ResourceSlice("s1", "gpu.example", "n").OnNode("n").Of(3).Counters("set", "memory", "4Gi").Obj(),
				testkit.ResourceSlice("s2", "gpu.example", "n").OnNode("n").Of(3).Devices(testkit.Device("d0")).Obj()}
		}, "d0: can't be allocated, pool gpu.example/n has the counter set set twice, in the slices s0 and s1"},
		{"none has the counters", func() []*resourcev1.ResourceSlice {
			return []*resourcev1.ResourceSlice{testkit.NodeSlice("gpu.example", "n").Devices(testkit.Device("d0").Consumes("set", "memory", "1Gi")).Obj()}
		}, "d0: can't be allocated, pool gpu.example/n has no counter set set, of which its device d0 consumes counters"},
	} {
		t.Run(c.name, func(t *testing.T) {
			core := newCore(t, core.DefaultConfig())
			in := []step.Input{step.ObjectSet{Object: testkit.DeviceClass("gpus", "", `device.driver == "gpu.example"`)},
				step.NodeSet{Node: testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj()},
				step.ObjectSet{Object: testkit.ResourceClaim("c", testkit.Request("q", "gpus")).Obj()}, step.PodSet{Pod: testkit.Pod("p").Claims("c").Obj()}}
			for _, s := range c.slices() {
				in = append(in, step.ObjectSet{Object: s})
			}
			core.Step(time.Unix(1, 0), door.Must(in...)...)
			x, _ := core.View().Explain("default", "p")
			if x.Outcome != "Waits" || len(x.Details) != 1 || !strings.HasSuffix(x.Details[0].Text, "of class gpus taken; "+c.want) {
				t.Errorf("%s: %+v, want the end %q", x.Outcome, x.Details, c.want)
			}
		})
	}
}
