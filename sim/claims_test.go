package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/sim/scenario"
)

// This file specifies the resourceclaim controller, the drivers of devices, and what the API server does with what Berth
// writes before it binds a pod.

const gpuWorld = `
  deviceClasses: [{name: gpu, driver: gpu.example.com}]
  nodes:
  - {name: n, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}, devices: [{driver: gpu.example.com, name: gpu, count: 2}]}
`

const ownClaims = gpuWorld + `
  workload:
  - {name: w, count: 1, runFor: {min: 1m, max: 1m}, claims: [{name: gpu, class: gpu}], template: {spec: {containers: [{name: c}]}}}
`

const sharedClaim = gpuWorld + `
  workload:
  - {name: w, count: 2, runFor: {min: 1m, max: 3m}, claims: [{name: gpu, class: gpu, shared: true}], template: {spec: {containers: [{name: c}]}}}
`

// claimsText says what claims there are: whether each has devices, and for which pods it is reserved.
func (w *World) claimsText() string {
	var out []string
	for _, c := range objectsOf[*resourcev1.ResourceClaim](w) {
		text := strings.TrimSuffix(c.Name, c.Name[strings.LastIndex(c.Name, "-"):])
		if c.Status.Allocation != nil {
			text += " has " + c.Status.Allocation.Devices.Results[0].Device
		}
		for _, r := range c.Status.ReservedFor {
			text += " for " + r.Name
		}
		if c.DeletionTimestamp != nil {
			text += " (terminating)"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// bindWith binds a pod with a device of the node, as Berth's workers do.
func (w *World) bindWith(t *testing.T, p *pod, device string) {
	t.Helper()
	if err := w.write(p, device); err != nil {
		t.Fatal(err)
	}
	if err := w.bind(p.obj.UID, "n"); err != nil {
		t.Fatal(err)
	}
}

// write writes the first claim of a pod with a device.
func (w *World) write(p *pod, device string) error {
	c := objectsOf[*resourcev1.ResourceClaim](w)[0].DeepCopy()
	c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
		{Request: "gpu", Driver: "gpu.example.com", Pool: "n", Device: device}}}}
	return w.reserveClaim(&step.Bind{UID: p.obj.UID, Name: p.obj.Name, Namespace: p.obj.Namespace}, c)
}

func (w *World) wantClaims(t *testing.T, when, want string) {
	t.Helper()
	if got := w.claimsText(); got != want {
		t.Errorf("%s: got claims %q, want %q", when, got, want)
	}
}

func TestClaimsOfTemplatesComeLateAndGoWithTheirPod(t *testing.T) {
	w := newTestWorld(t, ownClaims)
	w.pass(10 * time.Millisecond)
	p := w.sortedPods()[0]
	if w.wantClaims(t, "at once", ""); len(p.obj.Status.ResourceClaimStatuses) > 0 {
		t.Error("the pod's status names a claim that doesn't exist")
	}
	w.pass(10 * time.Second)
	w.wantClaims(t, "after 10 s", "w-0-gpu")
	c := objectsOf[*resourcev1.ResourceClaim](w)[0]
	if s := p.obj.Status.ResourceClaimStatuses; len(s) != 1 || s[0].Name != "gpu" || *s[0].ResourceClaimName != c.Name {
		t.Errorf("the pod's status has %v, want the claim %s", s, c.Name)
	}
	if c.OwnerReferences[0].UID != p.obj.UID || c.Annotations[resourcev1.PodResourceClaimAnnotation] != "gpu" {
		t.Errorf("the claim has owners %v and annotations %v, want those of the pod and its claim", c.OwnerReferences, c.Annotations)
	}
	w.bindWith(t, p, "gpu-0")
	w.wantClaims(t, "bound", "w-0-gpu has gpu-0 for w-0")
	w.pass(61 * time.Second)
	if w.pass(10 * time.Second); !p.ended {
		t.Fatal("the pod hasn't ended")
	}
	w.pass(20 * time.Second)
	w.wantClaims(t, "after the pod has ended", "")
}

func TestAClaimGoesWithAPodThatIsDeleted(t *testing.T) {
	w := newTestWorld(t, ownClaims)
	w.pass(10 * time.Second)
	p := w.sortedPods()[0]
	w.bindWith(t, p, "gpu-0")
	w.deletePod(p)
	w.pass(time.Second)
	w.wantClaims(t, "while the pod terminates", "w-0-gpu has gpu-0 for w-0")
	w.pass(2 * time.Minute)
	w.wantClaims(t, "after the pod is gone", "")
	if w.stats.Devices.Freed == 0 {
		t.Error("the controller has freed no devices")
	}
}

func TestASharedClaimHasDevicesUntilItsLastPodEnds(t *testing.T) {
	w := newTestWorld(t, sharedClaim)
	w.pass(10 * time.Second)
	for _, p := range w.sortedPods() {
		w.bindWith(t, p, "gpu-1")
	}
	w.wantClaims(t, "bound", "w has gpu-1 for w-0 for w-1")
	var seen []string
	for range 30 {
		w.pass(10 * time.Second)
		if now := w.claimsText(); !slices.Contains(seen, now) {
			seen = append(seen, now)
		}
	}
	if len(seen) != 3 || seen[2] != "w" || len(objectsOf[*resourcev1.ResourceClaim](w)[0].Finalizers) > 0 {
		t.Errorf("the claim went through %q, want that it is reserved for both, then one, and then free, without a finalizer", seen)
	}
}

func TestWritesOfClaimsAreRefusedByWhatHasHappened(t *testing.T) {
	w := newTestWorld(t, sharedClaim)
	w.pass(10 * time.Second)
	first, second := w.sortedPods()[0], w.sortedPods()[1]
	w.bindWith(t, first, "gpu-1")
	if err := w.write(second, "gpu-0"); err == nil || !strings.Contains(err.Error(), "got allocated elsewhere in the meantime") {
		t.Errorf("other devices: got %v, want a refusal", err)
	}
	if err := w.write(second, "gpu-1"); err != nil {
		t.Errorf("the same devices: got %v, want no error", err)
	}
	w.remove(objectsOf[*resourcev1.ResourceClaim](w)[0])
	if err := w.write(second, "gpu-1"); err == nil || !strings.Contains(err.Error(), "got deleted in the meantime") {
		t.Errorf("a claim that is being deleted: got %v, want a refusal", err)
	}
	w.wantClaims(t, "deleted while in use", "w has gpu-1 for w-0 for w-1 (terminating)")
}

func TestWhatWasWrittenIsTakenBackUnlessThePodIsBound(t *testing.T) {
	w := newTestWorld(t, sharedClaim)
	w.pass(10 * time.Second)
	first, second := w.sortedPods()[0], w.sortedPods()[1]
	w.bindWith(t, first, "gpu-1")
	if err := w.write(second, "gpu-1"); err != nil {
		t.Fatal(err)
	}
	c := objectsOf[*resourcev1.ResourceClaim](w)[0]
	for _, p := range []*pod{second, first} {
		w.unreserveClaim(&step.Bind{UID: p.obj.UID}, c)
		w.wantClaims(t, "taken back for "+p.obj.Name, "w has gpu-1 for w-0")
	}
}

// TestClaimsOfADumpAreFreedOfPodsThatItLacks has a claim that is reserved for a pod which doesn't exist.
func TestClaimsOfADumpAreFreedOfPodsThatItLacks(t *testing.T) {
	w := newTestWorld(t, gpuWorld+`
  objects:
  - kind: ResourceClaim
    metadata: {name: c-0, finalizers: [resource.kubernetes.io/delete-protection]}
    spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
    status:
      allocation: {devices: {results: [{request: gpu, driver: gpu.example.com, pool: n, device: gpu-0}]}}
      reservedFor: [{resource: pods, name: gone, uid: gone}]
`)
	w.wantClaims(t, "at the beginning", "c has gpu-0 for gone")
	w.pass(10 * time.Second)
	w.wantClaims(t, "after 10 s", "c")
}

// played plays a world with every check to its end, and wants no violation and that all pods end.
func played(t *testing.T, spec string) *World {
	t.Helper()
	w := newTestWorld(t, spec)
	w.opt.Check = true
	if _, err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, v := range w.stats.Violations {
		t.Error(v)
	}
	if w.stats.Pending > 0 || len(objectsOf[*resourcev1.ResourceClaim](w)) > 0 {
		t.Errorf("in the end %d pods wait, and there are claims %q, want none", w.stats.Pending, w.claimsText())
	}
	return w
}

func TestABindThatFailsTakesItsClaimsBack(t *testing.T) {
	w := played(t, strings.Replace(ownClaims, "count: 1, runFor", "count: 6, runFor", 1)+`
  faults: [{kind: APIError, rate: 0.4, until: 10m}, {kind: AnswerLost, rate: 0.2, until: 10m}]
`)
	if d := w.stats.Devices; d.Given < 6 || d.TakenBack == 0 {
		t.Errorf("got %+v, want that each of six pods was given devices, and some taken back", d)
	}
}

func TestABindWaitsUntilItsDevicesAreReady(t *testing.T) {
	w := played(t, strings.Replace(ownClaims, "count: 2}]", "count: 2, bindingConditions: [example.com/attached]}]", 1))
	if w.stats.Devices.NotReady == 0 {
		t.Error("no bind has waited for a device")
	}
}

// slicesText says which devices a node's slices have, and of which generation.
func (w *World) slicesText(node string) string {
	var out []string
	for _, s := range w.slicesOf(node) {
		text := fmt.Sprint("generation ", s.Spec.Pool.Generation, ":")
		for _, d := range s.Spec.Devices {
			text += " " + d.Name
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func TestDriversPublishDevicesAfterANewNodeIsReady(t *testing.T) {
	w := newTestWorld(t, `
  nodeGroups:
  - {name: g, min: 1, max: 2, initial: 1, launchDelay: {min: 10s, max: 10s}, startup: {min: 5s, max: 5s}, devicesAfter: {min: 30s, max: 30s},
    template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}, devices: [{driver: gpu.example.com, name: gpu, count: 2}]}
`)
	if got := w.slicesText("g-0001"); got != "generation 1: gpu-0 gpu-1" {
		t.Errorf("at the beginning the first node has %q, want both devices", got)
	}
	if err := w.increaseTarget("g", 1); err != nil {
		t.Fatal(err)
	}
	w.pass(40 * time.Second)
	if n := w.nodes["g-0002"]; n == nil || !n.ready() || w.slicesText("g-0002") != "" {
		t.Errorf("after 40 s node g-0002 has devices %q, want a ready node without", w.slicesText("g-0002"))
	}
	w.pass(10 * time.Second)
	if got := w.slicesText("g-0002"); got != "generation 1: gpu-0 gpu-1" {
		t.Errorf("after 50 s it has %q, want both devices", got)
	}
	w.removeNode(w.nodes["g-0002"], false)
	w.pass(20 * time.Second)
	if got := w.slicesText("g-0002"); got != "" {
		t.Errorf("after the node it has %q, want none", got)
	}
}

func TestDevicesAreChangedWithdrawnAndTainted(t *testing.T) {
	first := func(int) int { return 0 }
	w := newTestWorld(t, gpuWorld)
	minute := scenario.Fault{}
	minute.For.Duration = time.Minute
	for _, c := range []struct {
		name                 string
		run                  func()
		soon, later, tainted string
	}{
		{"changed", func() { w.changeDevices(&minute, first) }, "generation 2: gpu-0", "generation 3: gpu-0 gpu-1", ""},
		{"withdrawn", func() { w.withdrawDevices(&minute, first) }, "", "generation 4: gpu-0 gpu-1", ""},
		{"tainted", func() { w.taintDevice(&minute, resourcev1.DeviceTaintEffectNoSchedule, first) }, "generation 4: gpu-0 gpu-1", "generation 4: gpu-0 gpu-1", "gpu-0"},
	} {
		c.run()
		w.pass(10 * time.Second)
		if got := w.slicesText("n"); got != c.soon {
			t.Errorf("%s: after 10 s it has %q, want %q", c.name, got, c.soon)
		}
		if rules := objectsOf[*resourcev1.DeviceTaintRule](w); len(rules) > 0 != (c.tainted != "") || c.tainted != "" && *rules[0].Spec.DeviceSelector.Device != c.tainted {
			t.Errorf("%s: there are rules %v, want one for %q", c.name, rules, c.tainted)
		}
		w.pass(70 * time.Second)
		if got := w.slicesText("n"); got != c.later {
			t.Errorf("%s: after 80 s it has %q, want %q", c.name, got, c.later)
		}
	}
	if rules := objectsOf[*resourcev1.DeviceTaintRule](w); len(rules) > 0 {
		t.Errorf("in the end there are rules %v, want none", rules)
	}
}

// TestChecksFindWhatAPodIsBoundWithout binds pods without what they claim, and two with one device.
func TestChecksFindWhatAPodIsBoundWithout(t *testing.T) {
	w := newTestWorld(t, strings.Replace(ownClaims, "count: 1, runFor", "count: 2, runFor", 1))
	w.opt.Check = true
	w.pass(10 * time.Second)
	p, q := w.sortedPods()[0], w.sortedPods()[1]
	if err := w.bind(p.obj.UID, "n"); err != nil {
		t.Fatal(err)
	}
	if v := w.stats.Violations; len(v) != 1 || !strings.Contains(v[0], "breaks reserved: pod default/w-0 is on node n, and the claim has no devices") {
		t.Errorf("a bind without devices: got violations %q", v)
	}
	w.stats.Violations = nil
	for _, x := range []*pod{p, q} {
		c := w.resourceClaim("default", x.claims["gpu"]).DeepCopy()
		c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: "gpu", Driver: "gpu.example.com", Pool: "n", Device: "gpu-0"}}}}
		if err := w.reserveClaim(&step.Bind{UID: x.obj.UID, Name: x.obj.Name}, c); err != nil {
			t.Fatal(err)
		}
	}
	if v := w.stats.Violations; len(v) != 1 || !strings.Contains(v[0], "breaks twice: device gpu.example.com/n/gpu-0") {
		t.Errorf("a device for two: got violations %q", v)
	}
}

// TestExtendedResourcesOfDevicesAreNoCapacity checks that requests for what devices provide count where a node offers it by
// itself, and nowhere else.
func TestExtendedResourcesOfDevicesAreNoCapacity(t *testing.T) {
	w := newTestWorld(t, strings.Replace(gpuWorld, "driver: gpu.example.com}]", "driver: gpu.example.com, extendedResourceName: example.com/gpu}]", 1))
	p := &v1.Pod{}
	p.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{Requests: v1.ResourceList{}}}}
	n := w.nodes["n"].obj
	p.Spec.Containers[0].Resources.Requests["example.com/gpu"] = n.Status.Allocatable["cpu"]
	p.Spec.Containers[0].Resources.Requests["cpu"] = n.Status.Allocatable["cpu"]
	if got := w.byPlugins(p, n).Spec.Containers[0].Resources.Requests; len(got) != 1 {
		t.Errorf("a node with devices counts %v, want CPU only", got)
	}
	offers := n.DeepCopy()
	offers.Status.Allocatable["example.com/gpu"] = n.Status.Allocatable["cpu"]
	if got := w.byPlugins(p, offers).Spec.Containers[0].Resources.Requests; len(got) != 2 {
		t.Errorf("a node that offers the resource counts %v, want it, too", got)
	}
}

// TestPodsLoseDevicesWithNoExecuteTaints: a pod whose device gets a taint of that effect is deleted, unless it
// tolerates that: for ever, or for so long.
func TestPodsLoseDevicesWithNoExecuteTaints(t *testing.T) {
	first := func(int) int { return 0 }
	for _, c := range []struct {
		name       string
		effect     resourcev1.DeviceTaintEffect
		device     string
		tolerates  *int64 // seconds; -1 for ever
		soon, late bool   // the pod goes within 10 seconds, or 50
	}{
		{"its device", resourcev1.DeviceTaintEffectNoExecute, "gpu-0", nil, true, true},
		{"another device", resourcev1.DeviceTaintEffectNoExecute, "gpu-1", nil, false, false},
		{"NoSchedule", resourcev1.DeviceTaintEffectNoSchedule, "gpu-0", nil, false, false},
		{"tolerated for ever", resourcev1.DeviceTaintEffectNoExecute, "gpu-0", ptr.To[int64](-1), false, false},
		{"tolerated for 30 seconds", resourcev1.DeviceTaintEffectNoExecute, "gpu-0", ptr.To[int64](30), false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t, strings.Replace(sharedClaim, "min: 1m, max: 3m", "min: 1h, max: 1h", 1))
			w.pass(10 * time.Second)
			p := w.sortedPods()[0]
			w.bindWith(t, p, c.device)
			if c.tolerates != nil {
				claim := objectsOf[*resourcev1.ResourceClaim](w)[0].DeepCopy()
				x := resourcev1.DeviceToleration{Operator: resourcev1.DeviceTolerationOpExists}
				if *c.tolerates >= 0 {
					x.TolerationSeconds = c.tolerates
				}
				claim.Status.Allocation.Devices.Results[0].Tolerations = []resourcev1.DeviceToleration{x}
				w.storeClaim(claim)
			}
			w.taintDevice(&scenario.Fault{}, c.effect, first) // gpu-0
			going := func() bool { return p.gone || p.terminating() }
			w.pass(10 * time.Second)
			if going() != c.soon {
				t.Errorf("after 10 s the pod is going: %v, want %v", going(), c.soon)
			}
			w.pass(40 * time.Second)
			if going() != c.late {
				t.Errorf("after 50 s the pod is going: %v, want %v", going(), c.late)
			}
		})
	}
}
