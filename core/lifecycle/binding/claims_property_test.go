package binding_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/step"
)

// TestPropertyNoDeviceIsAllocatedTwiceOrForGood has pods that share claims, have their own, and request
// extended resources be placed, bound and deleted. Every call to the API server may fail; the machine is
// told of what the API has in any interleaving with that; and it may start anew at any point. No device
// is ever of two claims, a bound pod has its claims, and when the pods are gone nothing is kept.
func TestPropertyNoDeviceIsAllocatedTwiceOrForGood(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDevicesWorld()
		for k := range rapid.IntRange(1, 120).Draw(t, "events") {
			d.event(t, k)
			if broken := d.brokenDevices(); broken != nil {
				t.Fatalf("broken: %q", broken)
			}
		}
		d.settle(t)
		if left := d.m.Unsettled(); left != nil {
			t.Errorf("kept beside running pods: %q", left)
		}
		for _, uid := range slices.Sorted(maps.Keys(d.api.pods)) {
			d.deletePod(uid)
		}
		d.settle(t)
		if left := d.leftOver(); left != nil {
			t.Errorf("left: %q", left)
		}
	})
}

// settle ends what is under way.
func (d *devicesWorld) settle(t *rapid.T) {
	for round := 0; len(d.binds)+len(d.api.log)+len(d.api.podLog) > 0 || round < 2; round++ {
		for _, b := range slices.Clone(d.binds) {
			d.advance(b, served)
		}
		for _, name := range slices.Sorted(maps.Keys(d.api.claims)) {
			d.api.controller(d.api.claims[name])
		}
		d.told()
		d.toldOfPod()
		if broken := d.brokenDevices(); broken != nil {
			t.Fatalf("broken at the end: %q", broken)
		}
	}
}

// fates are those of a call, as often as they happen.
var fates = []fate{served, served, served, served, served, served, served, served, refused, gaveUp}

// event has something happen.
func (d *devicesWorld) event(t *rapid.T, k int) {
	pods := slices.Sorted(maps.Keys(d.api.pods))
	var pod types.UID
	if len(pods) > 0 {
		pod = rapid.SampledFrom(pods).Draw(t, "pod")
	}
	switch event := rapid.IntRange(0, 19).Draw(t, "event"); {
	case event < 3 && len(pods) < 5 || pod == "":
		name := fmt.Sprint("p", k)
		d.newPod(name, rapid.SampledFrom([][]string{{"shared"}, {"shared"}, {"own-" + name}, {"shared", "own-" + name}, {"extended"}, {"shared", "extended"}}).Draw(t, "uses")...)
	case event < 7:
		if d.api.pods[pod].Spec.NodeName == "" && (d.pods[pod] == nil || d.pods[pod].Node() == "") {
			d.placePod(pod, rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node"))
		}
	case event < 13:
		if len(d.binds) > 0 {
			d.advance(rapid.SampledFrom(d.binds).Draw(t, "bind"), fates[rapid.IntRange(0, len(fates)-1).Draw(t, "fate")])
		}
	case event < 16:
		d.told()
	case event == 16:
		d.toldOfPod()
	case event == 17:
		claims := slices.Sorted(maps.Keys(d.api.claims))
		if len(claims) == 0 || rapid.Bool().Draw(t, "goes") {
			d.deletePod(pod)
			return
		}
		d.api.set(d.api.claims[rapid.SampledFrom(claims).Draw(t, "touched")]) // somebody writes a label
	case event == 18:
		for _, name := range slices.Sorted(maps.Keys(d.api.claims)) {
			d.api.controller(d.api.claims[name])
		}
	case rapid.IntRange(0, 3).Draw(t, "crash") == 0:
		d.start()
	}
}

// TestClaimsAreHeldUntilTheAPIShowsThem has the outcome of a bind come before what the bind wrote, as it
// may in a simulation: until the machine is told, the devices are the pod's all the same.
func TestClaimsAreHeldUntilTheAPIShowsThem(t *testing.T) {
	for _, use := range []string{"shared", "extended"} {
		t.Run(use, func(t *testing.T) {
			d := newDevicesWorld()
			d.newPod("p", use)
			for len(d.api.log) > 0 {
				d.told()
			}
			if !d.placePod("pod-p", "n1") {
				t.Fatal("it doesn't fit")
			}
			b := d.binds[0]
			for b.phase != settling {
				d.advance(b, served)
			}
			d.m.BindDone(d.Turn, step.BindDone{UID: "pod-p"})
			if broken := d.brokenDevices(); broken != nil {
				t.Errorf("before the API shows it: %q", broken)
			}
			if got := len(d.m.Unsettled()); got != 2 { // the pod and its claim
				t.Errorf("unsettled are %q", d.m.Unsettled())
			}
			for len(d.api.log) > 0 {
				d.told()
			}
			d.toldOfPod()
			if left := d.m.Unsettled(); left != nil {
				t.Errorf("unsettled in the end: %q", left)
			}
		})
	}
}
