package core_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file specifies how room is kept for a gang whose members claim devices.

// gpuRoom is a groupWorld of four nodes with two devices each, which pods claim by resource claims or, if extended, as
// an extended resource.
type gpuRoom struct {
	*groupWorld
	extended bool
}

// use is a pod of one CPU that claims so many devices, with its claim.
func (w *gpuRoom) use(name string, devices int, deadline int64, change func(*testkit.PodBuilder)) []step.Input {
	b := testkit.Pod(name).Req("cpu", "1")
	if w.extended {
		b.Req("example.com/gpu", fmt.Sprint(devices))
	} else {
		b.TemplateClaim("gpus", "of-"+name)
	}
	if change != nil {
		change(b)
	}
	p := b.Obj()
	if deadline > 0 {
		p.Spec.ActiveDeadlineSeconds = &deadline
	}
	if w.extended {
		return []step.Input{step.PodSet{Pod: p}}
	}
	return []step.Input{step.ObjectSet{Object: w.claim(name, devices).Obj()}, step.PodSet{Pod: p}}
}

func (w *gpuRoom) claim(pod string, devices int) *testkit.ResourceClaimBuilder {
	return testkit.ResourceClaim("of-"+pod, testkit.Request("r", "gpus").Count(int64(devices))).MadeFor(pod)
}

// runs is a pod that has been on a node since the world began, with one of its devices.
func (w *gpuRoom) runs(name string, node, device int, deadline int64) (in []step.Input) {
	on := fmt.Sprint("n", node)
	for _, x := range w.use(name, 1, deadline, func(b *testkit.PodBuilder) { b.On(on) }) {
		if p, ok := x.(step.PodSet); ok {
			p.Pod.Status.StartTime = &metav1.Time{Time: w.now}
			in = append(in, p)
		}
	}
	c := w.claim(name, 1)
	if w.extended {
		c.ForExtended(name)
	}
	c.Allocated(testkit.Allocation("r", "gpu.example", on, fmt.Sprint("g", device))).OnNode(on).ReservedFor(name)
	return append(in, step.ObjectSet{Object: c.Obj()})
}

// ends has a pod end, and its claim go.
func (w *gpuRoom) ends(name string) []step.Input {
	return []step.Input{step.PodGone{UID: testkit.Pod(name).Obj().UID}, step.ObjectGone{Kind: cluster.ResourceClaimKind, Namespace: "default", Name: "of-" + name}}
}

// gpuRoomWorld has two pods on each node that end after 10 and 20 minutes, and a gang of four members that need both
// devices of a node each.
func gpuRoomWorld(t *testing.T, extended bool) *gpuRoom {
	w := &gpuRoom{newGroupWorld(t, func(p *framework.Profile) { p.KeepRoom = framework.KeepRoom{After: time.Minute, For: 30 * time.Minute} }), extended}
	resource := ""
	if extended {
		resource = "example.com/gpu"
	}
	w.step(step.ObjectSet{Object: testkit.DeviceClass("gpus", resource)})
	for i := range 4 {
		w.step(step.ObjectSet{Object: testkit.NodeSlice("gpu.example", fmt.Sprint("n", i)).Devices(testkit.Device("g0"), testkit.Device("g1")).Obj()})
		for k := range 2 {
			w.step(w.runs(fmt.Sprintf("small%d%d", i, k), i, k, int64(600*(k+1)))...)
		}
	}
	in := []step.Input{step.ObjectSet{Object: testkit.PodGroup("gang", 4, "")}}
	for i := range 4 {
		in = append(in, w.use(fmt.Sprint("gang", i), 2, 0, func(b *testkit.PodBuilder) { b.PodGroup("gang") })...)
	}
	w.step(in...)
	return w
}

// TestRoomIsKeptWithDevices: nobody takes a device of a node that a gang waits for but those who end in time or may be
// preempted, though no member could have its devices there yet. Pods that claim none go there.
func TestRoomIsKeptWithDevices(t *testing.T) {
	for _, extended := range []bool{false, true} {
		t.Run(fmt.Sprintf("extended resources %t", extended), func(t *testing.T) {
			w := gpuRoomWorld(t, extended)
			if _, rooms := w.after(time.Minute); !slices.Equal(rooms, []string{roomIsKept}) {
				t.Fatalf("after a minute: %q", rooms)
			}
			var in []step.Input
			for i := range 4 {
				in = append(in, w.ends(fmt.Sprintf("small%d0", i))...)
			}
			if binds, rooms := w.after(550*time.Second, in...); binds != nil || rooms != nil {
				t.Errorf("when a device of each node is free: bound %q, %q", binds, rooms)
			}
			// A node that says something new keeps its room.
			if _, rooms := w.after(0, step.NodeSet{Node: testkit.Node("n0").Alloc("cpu", "4", "memory", "8Gi").Zone("z0").Label("new", "label").Obj()}); rooms != nil {
				t.Errorf("when a node has changed: %q", rooms)
			}
			for _, c := range usersOfRoom {
				if extended && c.binds { // it would leave a claim that Berth makes, and whose outcome isn't known
					continue
				}
				binds, rooms := w.after(0, w.use(c.name, 1, c.deadline, func(b *testkit.PodBuilder) { b.Priority(c.priority) })...)
				if bound := slices.Contains(binds, c.name); bound != c.binds || rooms != nil {
					t.Errorf("%s is bound: %t, want %t; %q", c.name, bound, c.binds, rooms)
				}
			}
			if !extended { // its devices are there, and it takes no other
				if binds, _ := w.after(0, step.PodSet{Pod: testkit.Pod("beside").Req("cpu", "1").Claims("of-small11").Obj()}); len(binds) != 1 {
					t.Errorf("bound %q, want the pod whose claim has devices", binds)
				}
			}
			if binds, _ := w.after(0, step.PodSet{Pod: testkit.Pod("plain").Req("cpu", "1").Obj()}); len(binds) != 1 {
				t.Errorf("bound %q, want the pod without claims", binds)
			}
			in = nil
			for _, name := range []string{"small01", "small11", "small21", "small31", "short", "low", "high", "beside"} {
				in = append(in, w.ends(name)...)
			}
			binds, rooms := w.after(600*time.Second, in...)
			if len(binds) != 4 || !slices.Contains(binds, "gang3") || len(rooms) != 1 {
				t.Errorf("when all have ended: bound %q, %q; want the gang, and its room given back", binds, rooms)
			}
		})
	}
}

// TestRoomOfDevicesThatAreFree: a member keeps devices that are free already, one of two for which others have to end,
// and the second member's on the same node are others.
func TestRoomOfDevicesThatAreFree(t *testing.T) {
	w := &gpuRoom{emptyGroupWorld(t, func(p *framework.Profile) { p.KeepRoom = framework.KeepRoom{After: time.Minute, For: 30 * time.Minute} }), false}
	w.step(step.ObjectSet{Object: testkit.DeviceClass("gpus", "")}, step.NodeSet{Node: testkit.Node("n0").Alloc("cpu", "9", "memory", "8Gi").Obj()},
		step.ObjectSet{Object: testkit.NodeSlice("gpu.example", "n0").Devices(testkit.Device("g0"), testkit.Device("g1"), testkit.Device("g2"), testkit.Device("g3")).Obj()})
	w.step(w.runs("small", 0, 0, 600)...)
	in := []step.Input{step.ObjectSet{Object: testkit.PodGroup("gang", 3, "")}}
	for i := range 3 {
		in = append(in, w.use(fmt.Sprint("gang", i), 1, 0, func(b *testkit.PodBuilder) { b.PodGroup("gang").Req("cpu", "3") })...)
	}
	// Eight of nine CPUs are free, so the gang waits for a CPU, and three of three free devices are enough.
	w.step(in...)
	if _, rooms := w.after(time.Minute); len(rooms) != 1 {
		t.Fatalf("after a minute: %q", rooms)
	}
	if binds, _ := w.after(0, w.use("more", 1, 0, func(b *testkit.PodBuilder) { b.Req("cpu", "0") })...); binds != nil {
		t.Errorf("bound %q: the three free devices are the gang's", binds)
	}
	if binds, _ := w.after(600*time.Second, w.ends("small")...); len(binds) != 4 {
		t.Errorf("bound %q, want the gang, and the pod that waits for the fourth device", binds)
	}
}

// TestNoRoomIsKeptForSharedClaims: a gang one of whose members names a claim without devices is told so, and no room is
// kept for it; when the claim has devices there is.
func TestNoRoomIsKeptForSharedClaims(t *testing.T) {
	w := gpuRoomWorld(t, false)
	w.step(step.ObjectGone{Kind: cluster.PodGroupKind, Namespace: "default", Name: "gang"})
	in := []step.Input{step.ObjectSet{Object: testkit.PodGroup("gpu", 2, "")}, step.ObjectSet{Object: testkit.ResourceClaim("both", testkit.Request("r", "gpus")).Obj()}}
	for i := range 2 {
		in = append(in, step.PodSet{Pod: testkit.Pod(fmt.Sprint("gpu", i)).Req("cpu", "4").PodGroup("gpu").Claims("both").Obj()})
	}
	w.step(in...)
	const why = "devices can't be reserved for pod default/gpu0: other pods may use its claim default/both, too, which has none yet"
	if _, rooms := w.after(time.Minute); !slices.Equal(rooms, []string{"RoomMissing default/gpu: " + why}) {
		t.Errorf("it is said %q", rooms)
	}
	if x, _ := w.View().ExplainPodGroup("default", "gpu"); x.RoomMissing != why || x.Room != nil {
		t.Errorf("explained by %q, %+v", x.RoomMissing, x.Room)
	}
	if groups, places := w.kept(); groups != nil || places > 0 {
		t.Errorf("room is kept for %q, on %d places", groups, places)
	}
}

// TestNoRoomIsKeptForAClaimThatLosesItsDevices: the claim that members name has devices, and when those who use it have
// ended it gets others with the first who names it then.
func TestNoRoomIsKeptForAClaimThatLosesItsDevices(t *testing.T) {
	w := &gpuRoom{emptyGroupWorld(t, func(p *framework.Profile) { p.KeepRoom = framework.KeepRoom{After: time.Minute, For: 30 * time.Minute} }), false}
	w.step(step.ObjectSet{Object: testkit.DeviceClass("gpus", "")}, step.NodeSet{Node: testkit.Node("n0").Alloc("cpu", "4", "memory", "8Gi").Obj()},
		step.ObjectSet{Object: testkit.NodeSlice("gpu.example", "n0").Devices(testkit.Device("g0"), testkit.Device("g1")).Obj()})
	shared := testkit.ResourceClaim("shared", testkit.Request("r", "gpus")).Allocated(testkit.Allocation("r", "gpu.example", "n0", "g0")).OnNode("n0").ReservedFor("user")
	user := running("user", "n0", 600, w.now)
	user.Spec.ResourceClaims = testkit.Pod("user").Claims("shared").Obj().Spec.ResourceClaims
	in := []step.Input{step.ObjectSet{Object: shared.Obj()}, step.PodSet{Pod: user}, step.ObjectSet{Object: testkit.PodGroup("gang", 2, "")}}
	for i := range 2 {
		in = append(in, step.PodSet{Pod: testkit.Pod(fmt.Sprint("gang", i)).Req("cpu", "2").PodGroup("gang").Claims("shared").Obj()})
	}
	w.step(in...)
	want := "RoomMissing default/gang: devices can't be reserved by claim default/shared, which other pods may use, too, once it has lost those that it has"
	if _, rooms := w.after(time.Minute); !slices.Equal(rooms, []string{want}) {
		t.Errorf("it is said %q, want %q", rooms, want)
	}
}

// TestRoomFollowsMembersClaims: when the claim of a member gets devices, its stand-in keeps no others.
func TestRoomFollowsMembersClaims(t *testing.T) {
	w := gpuRoomWorld(t, false)
	w.after(time.Minute)
	c := w.claim("gang0", 2).Allocated(testkit.Allocation("r", "gpu.example", "n0", "g0"), testkit.Allocation("r", "gpu.example", "n0", "g1")).OnNode("n0")
	_, rooms := w.after(0, step.ObjectSet{Object: c.Obj()})
	if len(rooms) != 2 || rooms[0] != "RoomLost default/gang: claims of pod default/gang0 have got or lost their devices" {
		t.Errorf("it is said %q, want that room is searched anew", rooms)
	}
}
