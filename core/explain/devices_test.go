package explain_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/berthproject/berth/core"
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
