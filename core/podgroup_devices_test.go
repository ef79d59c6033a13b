package core_test

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// against is a Reserver that refuses a pod of a name.
type against string

func (against) Name() string { return "against" }

func (x against) Reserve(p *cluster.Pod, _ *cluster.Node) *framework.Reason {
	if p.Object.Name == string(x) {
		return &framework.Reason{Plugin: x.Name(), Messages: []string{"no"}}
	}
	return nil
}

func (against) Unreserve(*cluster.Pod, string, framework.WaitingPods) {}

// TestAMemberLosesDevicesWhereItCannotBe: a claim of a member has a device of a node that is gone, as after
// a crash. It is taken away from the claim, and then the group is placed, also in one domain.
func TestAMemberLosesDevicesWhereItCannotBe(t *testing.T) {
	for _, label := range []string{"", v1.LabelTopologyZone} {
		w := newGroupWorld(t, func(*framework.Profile) {})
		w.step(step.ObjectSet{Object: testkit.DeviceClass("gpus", "")},
			step.ObjectSet{Object: testkit.NodeSlice("gpu.example", "n0").Devices(testkit.NamedDevices("g0")...).Obj()},
			step.ObjectSet{Object: testkit.NodeSlice("gpu.example", "n1").Devices(testkit.NamedDevices("g0")...).Obj()},
			step.ObjectSet{Object: testkit.NodeSlice("gpu.example", "lost").Devices(testkit.NamedDevices("g0")...).Obj()},
			step.ObjectSet{Object: testkit.ResourceClaim("a", testkit.Request("gpu", "gpus")).Obj()},
			step.ObjectSet{Object: testkit.ResourceClaim("b", testkit.Request("gpu", "gpus")).Allocated(testkit.Allocation("gpu", "gpu.example", "lost", "g0")).OnNode("lost").Obj()},
			step.ObjectSet{Object: testkit.PodGroup("gang", 2, label)})
		var in []step.Input
		for _, name := range []string{"a", "b"} {
			in = append(in, step.PodSet{Pod: testkit.Pod(name).Req("cpu", "1").PodGroup("gang").Claims(name).Obj()})
		}
		r := w.Step(w.now, door.Must(in...)...)
		if len(r.Binds) > 0 || len(r.Deallocations) != 1 || r.Deallocations[0].Name != "b" {
			t.Fatalf("label %q: binds %+v, deallocations %+v; want none, and claim b", label, r.Binds, r.Deallocations)
		}
		w.now = w.now.Add(20 * time.Second)
		binds := w.step(step.DeallocationDone{UID: r.Deallocations[0].UID}, step.ObjectSet{Object: testkit.ResourceClaim("b", testkit.Request("gpu", "gpus")).Obj()})
		if slices.Sort(binds); !slices.Equal(binds, []string{"a", "b"}) {
			t.Errorf("label %q: then %q are bound, want both", label, binds)
		}
	}
}

// TestMembersThatShareAClaim are refused one by one: whoever it is, the claim stays as the others hold
// it, and when they have lost their nodes, too, it is as the API has it.
func TestMembersThatShareAClaim(t *testing.T) {
	for _, refused := range []string{"a", "b", "c"} {
		w := newGroupWorld(t, func(p *framework.Profile) { p.Reservers = append(p.Reservers, against(refused)) })
		w.step(step.ObjectSet{Object: testkit.DeviceClass("gpus", "")},
			step.ObjectSet{Object: testkit.NodeSlice("gpu.example", "n0").Devices(testkit.NamedDevices("g0")...).Obj()},
			step.ObjectSet{Object: testkit.ResourceClaim("shared", testkit.Request("gpu", "gpus")).Obj()},
			step.ObjectSet{Object: testkit.PodGroup("gang", 3, "")})
		var in []step.Input
		for _, name := range []string{"a", "b", "c"} {
			in = append(in, step.PodSet{Pod: testkit.Pod(name).Req("cpu", "1").PodGroup("gang").Claims("shared").Obj()})
		}
		binds := w.step(in...)
		claim := w.State().ResourceClaim("default", "shared")
		if binds != nil || w.placed() != 2 || claim.Status.Allocation == nil || len(claim.Status.ReservedFor) != 2 {
			t.Errorf("without %s %q are bound, %d have nodes, and the claim is %+v; want none, 2, and it reserved for these", refused, binds, w.placed(), claim.Status)
		}
		for range 2 * 6 {
			w.now = w.now.Add(time.Minute)
			w.step()
			if claim = w.State().ResourceClaim("default", "shared"); len(claim.Status.ReservedFor) != w.placed() {
				t.Errorf("without %s %d have nodes, and the claim is reserved for %v", refused, w.placed(), claim.Status.ReservedFor)
			}
		}
	}
}
