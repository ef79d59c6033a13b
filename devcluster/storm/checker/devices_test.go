package checker

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// This file specifies what a History finds of devices.

const gpus = "example.com/gpu"

// withDevices is a world of one node with two devices, the second of which is of the class "second", too.
func withDevices() *world {
	w := newWorld()
	w.config.Serves = func(class string, d *resourcev1.Device) bool {
		return class == "gpu" || class == "second" && d.Name == "d1"
	}
	w.config.Extended = map[v1.ResourceName]string{gpus: "gpu"}
	w.has(node("n", ""), slice("n", "d0", "d1"))
	return w
}

func slice(node string, names ...string) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node, UID: types.UID("slice-" + node)}}
	s.Spec.Pool.Name = node
	for _, d := range names {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: d})
	}
	return s
}

// claim returns a claim for one device of a class, which has those that are named.
func claim(name, class string, names ...string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}}
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, Count: 1}}}
	for _, d := range names {
		if c.Status.Allocation == nil {
			c.Status.Allocation = &resourcev1.AllocationResult{}
		}
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{Pool: "n", Device: d})
	}
	return c
}

// reserved returns a copy of a claim that is reserved for a pod.
func reserved(c *resourcev1.ResourceClaim, p *v1.Pod) *resourcev1.ResourceClaim {
	return changed(c, func(c *resourcev1.ResourceClaim) {
		c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{UID: p.UID})
	})
}

// user returns a pod with a claim.
func user(name, on, claim string) *v1.Pod {
	p := pod(name, on)
	p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "c", ResourceClaimName: &claim}}
	return p
}

// shown has the API show objects one after the other, each with its revision, as watches without gaps do.
func (w *world) shown(objects ...metav1.Object) {
	for _, o := range objects {
		o.SetResourceVersion(strconv.FormatInt(w.rev+1, 10))
		w.has(o)
		w.ClaimsSeen(w.now, w.rev)
	}
}

// finds fails unless the violations are of these kinds.
func (w *world) finds(t *testing.T, kinds ...Kind) {
	t.Helper()
	w.Check(w.now)
	var got []Kind
	for _, v := range w.Violations() {
		got = append(got, v.Kind)
	}
	if fmt.Sprint(got) != fmt.Sprint(kinds) {
		t.Errorf("found %v, want %v", w.Violations(), kinds)
	}
}

func TestDevicesAreGivenOnce(t *testing.T) {
	w := withDevices()
	w.shown(claim("a", "gpu", "d0"), claim("b", "gpu", "d1"))
	w.finds(t)
	w.shown(claim("b", "gpu", "d0"))
	w.finds(t, GivenTwice)
}

// TestAListIsOneMoment: within a list, the objects before and after a gap stand side by side.
func TestAListIsOneMoment(t *testing.T) {
	w := withDevices()
	a := claim("a", "gpu", "d0")
	w.shown(a)
	w.has(claim("b", "gpu", "d0"))
	w.loses(a)
	w.ClaimsSeen(w.now, w.rev)
	w.finds(t)
}

func TestPodsHaveTheirDevices(t *testing.T) {
	bound := user("p", "n", "a")
	elsewhere := changed(claim("a", "gpu", "d0"), func(c *resourcev1.ResourceClaim) { c.Status.Allocation.Devices.Results[0].Pool = "m" })
	for _, c := range []struct {
		name  string
		claim *resourcev1.ResourceClaim
		found []Kind
	}{
		{"with its device", reserved(claim("a", "gpu", "d0"), bound), nil},
		{"without", reserved(claim("a", "gpu"), bound), []Kind{WithoutDevices}},
		{"reserved for another", reserved(claim("a", "gpu", "d0"), pod("q", "n")), []Kind{WithoutDevices}},
		{"with another node's", reserved(elsewhere, bound), []Kind{WithoutDevices}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := withDevices()
			w.shown(c.claim, bound.DeepCopy())
			w.finds(t, c.found...)
		})
	}
}

// TestAClaimThatGoesWithItsPodIsNotMissed: what a claim says after its pod has ended is no violation, also when
// the end of the pod is seen later.
func TestAClaimThatGoesWithItsPodIsNotMissed(t *testing.T) {
	bound := user("p", "n", "a")
	w := withDevices()
	w.shown(reserved(claim("a", "gpu", "d0"), bound), bound.DeepCopy())
	freed := claim("a", "gpu")
	freed.ResourceVersion = strconv.FormatInt(w.rev+2, 10)
	w.Observe(w.now, Change{Object: freed, After: w.rev + 1, By: w.rev + 2}) // the pod ended one revision before
	w.finds(t)
	w.PodsSeen(w.rev + 2) // it didn't
	w.finds(t, WithoutDevices)
}

func TestDevicesAreNotKeptForNobody(t *testing.T) {
	running, waiting := user("p", "n", "a"), user("q", "", "b")
	for _, c := range []struct {
		name  string
		claim *resourcev1.ResourceClaim
		found []Kind
	}{
		{"for a pod on a node", reserved(claim("a", "gpu", "d0"), running), nil},
		{"for none", claim("a", "gpu", "d0"), []Kind{DevicesKept}},
		{"for one that is gone", reserved(claim("b", "gpu", "d0"), pod("gone", "n")), []Kind{DevicesKept}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := withDevices()
			w.shown(c.claim)
			if c.name == "for a pod on a node" {
				w.shown(running.DeepCopy())
			}
			w.passes(40 * time.Second)
			if len(c.claim.Status.ReservedFor) > 0 {
				w.finds(t) // the controller may not have heard of the pod's end
				w.passes(controllersLag)
			}
			w.finds(t, c.found...)
			w.Empty(w.now)
			if w.Left() != 1 {
				t.Errorf("%d claims or nodes are left without load, want 1", w.Left())
			}
		})
	}
	w := withDevices() // neither the pod nor its device finds the way
	w.shown(reserved(claim("b", "gpu", "d0"), waiting), waiting)
	w.passes(40 * time.Second)
	w.finds(t, Unscheduled, DevicesKept)
}

// TestWhetherDevicesFit says which pods could be placed.
func TestWhetherDevicesFit(t *testing.T) {
	extended := pod("p", "")
	extended.Spec.Containers[0].Resources.Requests[gpus] = resource.MustParse("2")
	for _, c := range []struct {
		name  string
		pod   *v1.Pod
		there []metav1.Object
		fits  bool
	}{
		{"a free device", user("p", "", "a"), []metav1.Object{claim("a", "gpu")}, true},
		{"the claim isn't there", user("p", "", "a"), nil, false},
		{"all are taken", user("p", "", "a"), []metav1.Object{claim("a", "gpu"), claim("b", "gpu", "d0", "d1")}, false},
		{"its claim has one", user("p", "", "a"), []metav1.Object{claim("a", "gpu", "d0"), claim("b", "gpu", "d1")}, true},
		{"of its class", user("p", "", "a"), []metav1.Object{claim("a", "second"), claim("b", "gpu", "d0")}, true},
		{"only of another class", user("p", "", "a"), []metav1.Object{claim("a", "second"), claim("b", "gpu", "d1")}, false},
		{"the free one is tainted", user("p", "", "a"), []metav1.Object{claim("a", "gpu"), claim("b", "gpu", "d1"),
			changed(slice("n", "d0", "d1"), func(s *resourcev1.ResourceSlice) { s.Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: "k"}} })}, false},
		{"for extended resources", extended, nil, true},
		{"too few for extended resources", extended, []metav1.Object{claim("b", "gpu", "d1")}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := withDevices()
			w.shown(c.there...)
			w.shown(c.pod.DeepCopy())
			w.Check(w.now)
			if got := w.Fitting(w.now.Add(time.Second), 0) == 1; got != c.fits {
				t.Errorf("it fits: %t, want %t", got, c.fits)
			}
		})
	}
}
