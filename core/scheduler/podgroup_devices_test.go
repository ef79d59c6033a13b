package scheduler_test

import (
	"fmt"
	"testing"

	"github.com/berthproject/berth/internal/test/testkit"
)

// TestMembersClaimDevices: members take devices, each other ones or those of a claim that they share,
// and a group that isn't placed leaves all claims and devices as they were.
func TestMembersClaimDevices(t *testing.T) {
	for _, c := range []struct {
		name   string
		min    int
		claims []string // by member
		placed int
		writes int // claims that change, a shared one once for each member
	}{
		{"a device for each", 3, []string{"a", "b", "c"}, 3, 3},
		{"too few devices", 4, []string{"a", "b", "c", "d"}, 0, 0},
		{"too few devices for all, and enough for the group", 3, []string{"a", "b", "c", "d"}, 3, 3},
		{"a claim that members share", 4, []string{"a", "a", "b", "c"}, 4, 4},
		{"a claim that is shared, and too few devices", 5, []string{"a", "a", "b", "c", "d"}, 0, 0},
		{"a claim that more members share than a node takes", 5, []string{"a", "a", "a", "a", "a"}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, fours("n1", "n2"))
			w.SetObject(testkit.DeviceClass("gpus", ""))
			w.SetObject(testkit.NodeSlice("gpu.example", "n1").Devices(testkit.NamedDevices("g0", "g1")...).Obj())
			w.SetObject(testkit.NodeSlice("gpu.example", "n2").Devices(testkit.NamedDevices("g0")...).Obj())
			var members []*testkit.PodBuilder
			for i, claim := range c.claims {
				if w.ResourceClaim("default", claim) == nil {
					w.SetObject(testkit.ResourceClaim(claim, testkit.Request("gpu", "gpus")).Obj())
				}
				members = append(members, testkit.Pod(fmt.Sprint("m", i)).Req("cpu", "1").Claims(claim))
			}
			r := w.group(c.min, "", members...)
			before := dump(w.State)
			d := w.DecideGroup(r)
			writes := 0
			for _, p := range d.Places {
				writes += len(p.Choice.Writes)
			}
			if len(d.Places) != c.placed || writes != c.writes {
				t.Fatalf("%d members were placed with %d changes of claims (%s), want %d with %d", len(d.Places), writes, d.Message, c.placed, c.writes)
			}
			if got := since(before, w.State); c.placed == 0 && got != before {
				t.Errorf("a group that wasn't placed has changed the state from\n%s\nto\n%s", before, got)
			}
			w.checkDevices(c.claims)
		})
	}
}

// checkDevices checks that no two of some claims have one device.
func (w *world) checkDevices(claims []string) {
	w.t.Helper()
	has := map[string]string{}
	for _, name := range claims {
		claim := w.ResourceClaim("default", name)
		if claim.Status.Allocation == nil {
			continue
		}
		for _, x := range claim.Status.Allocation.Devices.Results {
			device := x.Pool + "/" + x.Device
			if other, taken := has[device]; taken && other != name {
				w.t.Errorf("claims %s and %s have device %s", other, name, device)
			}
			has[device] = name
		}
	}
}

// TestDevicesComeFreeForAGroup: victims leave for the devices that they have.
func TestDevicesComeFreeForAGroup(t *testing.T) {
	w := newWorld(t, fours("n1", "n2"))
	w.SetObject(testkit.DeviceClass("gpus", ""))
	w.SetObject(testkit.NodeSlice("gpu.example", "n1").Devices(testkit.NamedDevices("g0")...).Obj())
	w.SetObject(testkit.NodeSlice("gpu.example", "n2").Devices(testkit.NamedDevices("g0")...).Obj())
	for _, claim := range []string{"held1", "held2", "a", "b"} {
		w.SetObject(testkit.ResourceClaim(claim, testkit.Request("gpu", "gpus")).Obj())
	}
	for i, claim := range []string{"held1", "held2"} {
		p := w.pod(testkit.Pod(claim).Claims(claim))
		w.Engine(p).PlaceOn(p, w.NodeByName([]string{"n1", "n2"}[i]).Index)
	}
	w.place(testkit.Pod("idle").On("n1"))
	r := w.group(2, "", testkit.Pod("m0").Priority(10).Claims("a"), testkit.Pod("m1").Priority(10).Claims("b"))
	d := w.DecideGroup(r)
	if d.Victims == nil || len(d.Victims.Pods) != 2 {
		t.Fatalf("victims are %v, want held1 and held2: %s", d.Victims, d.Message)
	}
	for _, p := range d.Victims.Pods {
		if p.Object.Name == "idle" {
			t.Error("a pod without devices leaves for devices")
		}
	}
}
