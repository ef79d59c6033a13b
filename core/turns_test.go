package core_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle/podgroups"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file specifies that places with devices are given in turn, whoever has them by then: devices aren't alike.

// ofModel is a claim that was made for a pod, for a device of a model, "" for any.
func ofModel(pod, model string) *testkit.ResourceClaimBuilder {
	r := testkit.Request("r", "gpus")
	if model != "" {
		r.Where(fmt.Sprintf("device.attributes[%q].model == %q", "gpu.example", model))
	}
	return testkit.ResourceClaim(pod, r).MadeFor(pod)
}

func withOwnClaim(name, owner string) *testkit.PodBuilder {
	return testkit.Pod(name).Req("cpu", "1").TemplateClaim("own", name).Owner("apps/v1", "ReplicaSet", owner)
}

// TestReplacementsHaveTheTurnsOfTheirHomes has two pods leave a node: one needs the large device of another node, and
// any would do for the second, to which the allocator would give the large one. The first has its home before the
// second, and its replacement has the device, also when its bind fails once.
func TestReplacementsHaveTheTurnsOfTheirHomes(t *testing.T) {
	w := &drainedWorld{now: time.Unix(1000, 0)}
	w.driven = newDriven(t, autoscaling(func(*core.Autoscale) {}), inlinePlans{}, defaults, drive.HookFunc(w.note))
	in := []step.Input{
		step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Template: testkit.Node("g").Alloc("cpu", "1").Obj()}}},
		step.ObjectSet{Object: testkit.DeviceClass("gpus", "")},
	}
	for _, n := range []string{"old", "new"} {
		node := testkit.Node(n).Alloc("cpu", "4", "memory", "8Gi", "pods", "9")
		if n == "old" {
			node.Cordon()
		}
		in = append(in, step.NodeSet{Node: node.Obj()}, step.ObjectSet{Object: testkit.NodeSlice("gpu.example", n).
			Devices(testkit.Device("g0").Attr("model", "large"), testkit.Device("g1").Attr("model", "small")).Obj()})
	}
	for i, x := range []struct{ name, owner, model string }{{"picky-1", "picky", "large"}, {"any-1", "any", ""}} {
		device := fmt.Sprint("g", i)
		in = append(in, step.PodSet{Pod: withOwnClaim(x.name, x.owner).On("old").Obj()}, step.ObjectSet{Object: ofModel(x.name, x.model).
			Allocated(testkit.Allocation("r", "gpu.example", "old", device)).OnNode("old").ReservedFor(x.name).Obj()})
	}
	w.do(0, in...)
	if why := w.Core().ReserveHomes(&autoscaler.Removal{Node: "old", Homes: []autoscaler.Home{{Pod: "pod-picky-1", Node: "new"}, {Pod: "pod-any-1", Node: "new"}}}); why != "" {
		t.Fatal(why)
	}
	w.Core().PodEvicted("pod-picky-1")
	w.do(time.Second, step.PodGone{UID: "pod-picky-1"}, step.ObjectSet{Object: ofModel("picky-2", "large").Obj()},
		step.PodSet{Pod: withOwnClaim("picky-2", "picky").Obj()})
	w.expect(t, "when the replacement of the first comes", "picky-2>new")
	w.do(time.Second, step.BindDone{UID: "pod-picky-2", Err: errors.New("refused")})
	w.expect(t, "when its bind fails", "")
	w.do(time.Minute)
	w.expect(t, "when it is tried again", "picky-2>new")
	w.do(time.Second, step.BindDone{UID: "pod-picky-2"})
	w.Core().PodEvicted("pod-any-1")
	w.do(time.Second, step.PodGone{UID: "pod-any-1"}, step.ObjectSet{Object: ofModel("any-2", "").Obj()}, step.PodSet{Pod: withOwnClaim("any-2", "any").Obj()})
	w.expect(t, "when the replacement of the second comes", "any-2>new")
}

// TestAProcessThatTakesOverKeepsDevicesOfMembers: the bind of a member has failed, its place is kept as a nomination
// that the API shows, with the device that it claims, and another process takes over. A pod of the same priority that
// has waited for longer doesn't get the device, unless the member can't be tried for as long as places are kept, or is
// nominated since pods leave the node for it.
func TestAProcessThatTakesOverKeepsDevicesOfMembers(t *testing.T) {
	victim := testkit.Pod("victim").Priority(-1).On("n").Terminating().Obj()
	victim.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler}}
	for _, c := range []struct {
		name      string
		other     *v1.Pod
		now, then string // who is bound at once, and after five minutes
	}{
		{"it can be tried", testkit.Pod("c").PodGroup("gang").On("n").Obj(), "[member]", "[]"},
		{"another member is gated", testkit.Pod("c").PodGroup("gang").Gate("example.com/wait").Obj(), "[]", "[older]"},
		{"a pod leaves for it", victim, "[older]", "[]"},
	} {
		w := emptyGroupWorld(t, func(*framework.Profile) {})
		in := []step.Input{step.ObjectSet{Object: testkit.DeviceClass("gpus", "")}, step.ObjectSet{Object: testkit.PodGroup("gang", 2, "")},
			step.ObjectSet{Object: testkit.NodeSlice("gpu.example", "n").Devices(testkit.NamedDevices("g0")...).Obj()},
			step.NodeSet{Node: testkit.Node("n").Alloc("cpu", "9", "memory", "8Gi", "pods", "9").Obj()},
			step.ObjectSet{Object: ofModel("older", "").Obj()}, step.ObjectSet{Object: ofModel("member", "").Obj()},
			step.PodSet{Pod: testkit.Pod("older").TemplateClaim("own", "older").Obj()}, step.PodSet{Pod: c.other}}
		for _, name := range []string{"a", "b"} {
			in = append(in, step.PodSet{Pod: testkit.Pod(name).PodGroup("gang").On("n").Obj()})
		}
		in = append(in, step.PodSet{Pod: testkit.Pod("member").TemplateClaim("own", "member").PodGroup("gang").NominatedTo("n").Obj()})
		if binds := fmt.Sprint(w.step(in...)); binds != c.now {
			t.Errorf("%s: %s are bound at once, want %s", c.name, binds, c.now)
		}
		w.now = w.now.Add(podgroups.PermitTime - time.Second)
		if binds := w.step(); binds != nil {
			t.Errorf("%s: %s are bound while the place is kept", c.name, binds)
		}
		w.now = w.now.Add(time.Second)
		if binds := fmt.Sprint(w.step()); binds != c.then {
			t.Errorf("%s: %s are bound after five minutes, want %s", c.name, binds, c.then)
		}
	}
}

// TestBookedRoomHasTurns books room for a pod and for one of a higher priority, in this order. The second is decided
// on first, and the first keeps its turn.
func TestBookedRoomHasTurns(t *testing.T) {
	w := newDriven(t, autoscaling(func(*core.Autoscale) {}), inlinePlans{}, defaults)
	request := &autoscalingapi.ProvisioningRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "r", UID: "r", CreationTimestamp: metav1.NewTime(time.Unix(1000, 0))}}
	request.Spec.ProvisioningClassName = autoscalingapi.CheckCapacity
	in := []step.Input{step.NodeSet{Node: testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi", "pods", "9").Obj()}}
	for name, priority := range map[string]int32{"low": 0, "high": 10} {
		in = append(in, step.ObjectSet{Object: &v1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Template: v1.PodTemplateSpec{Spec: testkit.Pod(name).Req("cpu", "1").Priority(priority).Obj().Spec}}})
	}
	for _, name := range []string{"low", "high"} {
		request.Spec.PodSets = append(request.Spec.PodSets, autoscalingapi.PodSet{PodTemplateRef: autoscalingapi.LocalObjectRef{Name: name}, Count: 1})
	}
	w.step(time.Unix(1000, 0), append(in, step.ObjectSet{Object: request})...)
	w.step(time.Unix(1001, 0))
	var pods []*cluster.Pod
	for _, n := range w.Core().State().Nominations() {
		pods = append(pods, n.Pod)
	}
	w.Core().State().SortNominated(pods)
	var priorities []int32
	for _, p := range pods {
		priorities = append(priorities, p.Priority)
	}
	if !slices.Equal(priorities, []int32{0, 10}) {
		t.Errorf("room is kept for pods of the priorities %v, in turn; want 0 and 10", priorities)
	}
}
