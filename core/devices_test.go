package core_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// deviceWorld is a core with nodes n0 and n1, which have one device each, and a class of them that backs
// the resource gpu.
func deviceWorld(t *testing.T) (advance func(...step.Input) step.Ready, c *core.Core) {
	t.Helper()
	return deviceWorldWith(t, plugins.Options{DeviceBindTimeout: 7 * time.Minute})
}

func deviceWorldWith(t *testing.T, o plugins.Options) (advance func(...step.Input) step.Ready, c *core.Core) {
	t.Helper()
	schema := cluster.NewSchema()
	c, err := core.New(schema, core.DefaultConfig(plugins.Default(schema, o)))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0)
	advance = func(in ...step.Input) step.Ready {
		t.Helper()
		now = now.Add(20 * time.Second) // past every backoff
		r := c.Step(now, door.Must(in...)...)
		if broken := c.Invariants(); broken != nil {
			t.Fatalf("broken invariants: %q", broken)
		}
		return r
	}
	class := testkit.DeviceClass("gpus", gpu)
	class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.example"`}}}
	in := []step.Input{step.ObjectSet{Object: class}}
	for i := range 2 {
		node := fmt.Sprint("n", i)
		s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}}
		s.Spec = resourcev1.ResourceSliceSpec{Driver: "gpu.example", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}, Devices: []resourcev1.Device{{Name: "gpu"}}}
		in = append(in, step.NodeSet{Node: testkit.Node(node).Alloc("cpu", "4", "memory", "8Gi").Obj()}, step.ObjectSet{Object: s})
	}
	advance(in...)
	return advance, c
}

// gpuClaim returns a claim for a device, which it has on a node, "" for not yet.
func gpuClaim(name, node string, reserved ...types.UID) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("claim-" + name), ResourceVersion: "5"}}
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpus",
		AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}
	if node != "" {
		c.Status.Allocation = &resourcev1.AllocationResult{NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{node}}}}}}}
		c.Status.Allocation.Devices.Results = []resourcev1.DeviceRequestAllocationResult{{Request: "gpu", Driver: "gpu.example", Pool: node, Device: "gpu"}}
	}
	for _, uid := range reserved {
		c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: string(uid), UID: uid})
	}
	return c
}

func gpuUser(name, claim string) step.PodSet {
	return step.PodSet{Pod: testkit.Pod(name).Req("cpu", "1").With(func(p *v1.Pod) {
		p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
	}).Obj()}
}

// TestBindsBringTheDevicesOfTheirPods: a bind has the pod's claims with the devices that are to be
// written, also those that an earlier process has reserved, and says for which container a claim is that
// it creates.
func TestBindsBringTheDevicesOfTheirPods(t *testing.T) {
	advance, _ := deviceWorld(t)
	r := advance(step.ObjectSet{Object: gpuClaim("a", "")}, gpuUser("a", "a"))
	if len(r.Binds) != 1 || len(r.Binds[0].DeviceClaims) != 1 || len(r.Binds[0].Writes) != 0 || r.Binds[0].DeviceTimeout != 7*time.Minute {
		t.Fatalf("binds %+v, want one with a claim that waits for 7 minutes", r.Binds)
	}
	if c := r.Binds[0].DeviceClaims[0]; c.UID != "claim-a" || c.Status.Allocation == nil || c.Status.Allocation.Devices.Results[0].Pool != r.Binds[0].Node || len(c.Status.ReservedFor) != 1 {
		t.Errorf("the claim is to be %+v, want the device of %s", c, r.Binds[0].Node)
	}
	node := map[string]string{"n0": "n1", "n1": "n0"}[r.Binds[0].Node]
	r = advance(step.ObjectSet{Object: gpuClaim("b", node, "pod-b")}, gpuUser("b", "b"))
	if len(r.Binds) != 1 || len(r.Binds[0].DeviceClaims) != 1 || r.Binds[0].Node != node {
		t.Errorf("binds %+v, want one to %s with the claim that is reserved already", r.Binds, node)
	}
	r = advance(step.PodSet{Pod: testkit.Pod("c").Req("cpu", "1", gpu, "1").Obj()})
	if len(r.Binds) != 0 {
		t.Fatalf("binds %+v, and there is no device", r.Binds)
	}
	r = advance(step.ObjectSet{Object: gpuClaim("b", "")}, step.PodGone{UID: "pod-b"}, step.BindDone{UID: "pod-b", Err: errors.New("gone")})
	if r2 := advance(); len(r.Binds) == 0 {
		r = r2
	}
	if len(r.Binds) != 1 || len(r.Binds[0].DeviceClaims) != 1 || r.Binds[0].DeviceClaims[0].UID != "" || len(r.Binds[0].ExtendedResources) != 1 {
		t.Errorf("binds %+v, want one that creates a claim for the container", r.Binds)
	}
}

// TestClaimsInTheWayAreDeallocated: a claim that was allocated where its pod can't run, and that no
// other pod has, loses its devices. Once.
func TestClaimsInTheWayAreDeallocated(t *testing.T) {
	for _, c := range []struct {
		name  string
		claim *resourcev1.ResourceClaim
		want  bool
	}{
		{"on a node that is gone", gpuClaim("a", "gone"), true},
		{"its own", gpuClaim("a", "gone", "pod-a"), true},
		{"another pod has it", gpuClaim("a", "gone", "pod-x"), false},
		{"it and another pod have it", gpuClaim("a", "gone", "pod-a", "pod-x"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			advance, _ := deviceWorld(t)
			r := advance(step.ObjectSet{Object: c.claim}, gpuUser("a", "a"))
			if len(r.Binds) > 0 || (len(r.Deallocations) == 1) != c.want {
				t.Fatalf("binds %+v, deallocations %+v, want one: %t", r.Binds, r.Deallocations, c.want)
			}
			if !c.want {
				return
			}
			if got, want := r.Deallocations[0], (step.Deallocation{UID: "claim-a", Namespace: "default", Name: "a", Version: "5", Pod: "pod-a"}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			touched := c.claim.DeepCopy()
			touched.Status.Allocation.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values[0] = "gone, too" // wakes the pod
			touched.ResourceVersion = "6"
			if r := advance(step.ObjectSet{Object: touched}); len(r.Deallocations) > 0 {
				t.Errorf("it is asked for twice: %+v", r.Deallocations)
			}
			r = advance(step.DeallocationDone{UID: "claim-a", Err: errors.New("changed")})
			if len(r.Deallocations) != 1 || r.Deallocations[0].Version != "6" {
				t.Fatalf("after an error: %+v, want it for the claim as it is now", r.Deallocations)
			}
			r = advance(step.ObjectSet{Object: gpuClaim("a", "")}, step.DeallocationDone{UID: "claim-a"})
			if len(r.Binds) != 1 || len(r.Deallocations) > 0 {
				t.Errorf("binds %+v, deallocations %+v, want the pod bound", r.Binds, r.Deallocations)
			}
		})
	}
}

// TestClaimsWithFailedDevicesAreDeallocated has a binding failure condition be true.
func TestClaimsWithFailedDevicesAreDeallocated(t *testing.T) {
	advance, _ := deviceWorld(t)
	claim := gpuClaim("a", "n0", "pod-a")
	r := &claim.Status.Allocation.Devices.Results[0]
	r.BindingConditions, r.BindingFailureConditions = []string{"Attached"}, []string{"Broken"}
	claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: r.Driver, Pool: r.Pool, Device: r.Device, Conditions: []metav1.Condition{{Type: "Broken", Status: metav1.ConditionTrue}}}}
	if ready := advance(step.ObjectSet{Object: claim}, gpuUser("a", "a")); len(ready.Deallocations) != 1 {
		t.Errorf("deallocations %+v, want one", ready.Deallocations)
	}
}

// TestStaleClaimsForExtendedResourcesAreDeleted: a claim that a process before has created is in the way
// of the pod until it is gone.
func TestStaleClaimsForExtendedResourcesAreDeleted(t *testing.T) {
	advance, _ := deviceWorld(t)
	claim := gpuClaim("a-extended", "n0", "pod-a")
	yes := true
	claim.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "a", UID: "pod-a", Controller: &yes}}
	r := advance(step.ObjectSet{Object: claim}, step.PodSet{Pod: testkit.Pod("a").Req("cpu", "1", gpu, "1").Obj()})
	if len(r.Binds) > 0 || len(r.Deallocations) != 1 || !r.Deallocations[0].Delete {
		t.Fatalf("binds %+v, deallocations %+v, want the claim deleted", r.Binds, r.Deallocations)
	}
	r = advance(step.ObjectGone{Kind: cluster.ResourceClaimKind, Namespace: "default", Name: "a-extended"}, step.DeallocationDone{UID: r.Deallocations[0].UID})
	if len(r.Binds) != 1 || !strings.HasPrefix(r.Binds[0].DeviceClaims[0].Name, "a-extended-resources-") {
		t.Errorf("binds %+v, want one with a claim of its own", r.Binds)
	}
}

// TestClaimsOfABoundPodAreHeldUntilItIsGone: until the API shows what the bind has written, and the pod
// is there, nobody else gets its device.
func TestClaimsOfABoundPodAreHeldUntilItIsGone(t *testing.T) {
	advance, c := deviceWorld(t)
	r := advance(step.NodeGone{Name: "n1"}, step.ObjectSet{Object: gpuClaim("a", "")}, gpuUser("a", "a"))
	bound := gpuUser("a", "a")
	bound.Pod.Spec.NodeName = r.Binds[0].Node
	if r := advance(step.BindDone{UID: "pod-a"}, bound, step.ObjectSet{Object: gpuClaim("b", "")}, gpuUser("b", "b")); len(r.Binds) > 0 {
		t.Fatalf("binds %+v: the device is given away", r.Binds)
	}
	r = advance(step.PodGone{UID: "pod-a"})
	if r2 := advance(); len(r.Binds) == 0 {
		r = r2
	}
	if len(r.Binds) != 1 || r.Binds[0].Name != "b" {
		t.Errorf("binds %+v, want one of b; unsettled: %q", r.Binds, c.Unsettled())
	}
}

// TestPodsWaitForTheirClaimsOutsideTheQueue: a pod whose claim isn't there, isn't made of its template
// yet, or is on its way out is kept out of the queue, without a condition or an event, and is tried as
// soon as the claim is there.
func TestPodsWaitForTheirClaimsOutsideTheQueue(t *testing.T) {
	templated := gpuUser("a", "a")
	templated.Pod.Spec.ResourceClaims[0] = v1.PodResourceClaim{Name: "gpu", ResourceClaimTemplateName: new("gpus")}
	made := step.PodSet{Pod: templated.Pod.DeepCopy()}
	made.Pod.Status.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: new("a")}}
	own := gpuClaim("a", "")
	own.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "a", UID: "pod-a", Controller: new(true)}}
	leaving := gpuClaim("a", "")
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(900, 0)}
	for _, c := range []struct {
		name, why string
		pod       step.PodSet
		before    []step.Input
		lets      []step.Input // wakes the pod
	}{
		{"no claim", `could not find ResourceClaim "default/a"`, gpuUser("a", "a"), nil, []step.Input{step.ObjectSet{Object: gpuClaim("a", "")}}},
		{"not made of the template", `pod "default/a": ResourceClaim not created yet`, templated, nil, []step.Input{step.ObjectSet{Object: own}, made}},
		{"being deleted", `resourceclaim "a" is being deleted`, gpuUser("a", "a"), []step.Input{step.ObjectSet{Object: leaving}},
			[]step.Input{step.ObjectGone{Kind: cluster.ResourceClaimKind, Namespace: "default", Name: "a"}, step.ObjectSet{Object: gpuClaim("a", "")}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			advance, core := deviceWorld(t)
			r := advance(append(c.before, c.pod)...)
			if len(r.Conditions) > 0 || len(r.Events) > 0 || len(r.Binds) > 0 {
				t.Fatalf("conditions %+v, events %+v, binds %+v, want none", r.Conditions, r.Events, r.Binds)
			}
			if len(r.Decisions) != 1 || r.Decisions[0].Kind != step.Gated || r.Decisions[0].Reason != c.why {
				t.Errorf("decisions %+v, want that the pod is kept out: %s", r.Decisions, c.why)
			}
			if r := advance(step.ObjectSet{Object: gpuClaim("other", "")}); len(r.Decisions) > 0 {
				t.Errorf("another claim has brought %+v", r.Decisions)
			}
			if n := core.Stats().Unschedulable; n != 0 {
				t.Errorf("%d attempts in vain, want none", n)
			}
			if r := advance(c.lets...); len(r.Binds) != 1 {
				t.Errorf("binds %+v, want the pod's", r.Binds)
			}
		})
	}
}

// TestPodsWhoseClaimGoesAreTakenOutOfTheQueue: a pod that waits for a device, and whose claim is
// deleted, isn't tried and told of it.
func TestPodsWhoseClaimGoesAreTakenOutOfTheQueue(t *testing.T) {
	advance, _ := deviceWorld(t)
	advance(step.ObjectSet{Object: gpuClaim("x", "n0", "x")}, step.ObjectSet{Object: gpuClaim("y", "n1", "y")})
	if r := advance(step.ObjectSet{Object: gpuClaim("a", "")}, gpuUser("a", "a")); len(r.Conditions) != 1 || r.Conditions[0].Event == nil {
		t.Fatalf("conditions %+v, want that the pod waits for a device", r.Conditions)
	}
	r := advance(step.ObjectGone{Kind: cluster.ResourceClaimKind, Namespace: "default", Name: "a"})
	if len(r.Conditions) > 0 || len(r.Decisions) != 1 || r.Decisions[0].Kind != step.Gated {
		t.Fatalf("conditions %+v, decisions %+v, want the pod kept out", r.Conditions, r.Decisions)
	}
	r = advance(step.ObjectSet{Object: gpuClaim("a", "")}, step.ObjectSet{Object: gpuClaim("x", "")})
	if len(r.Binds) != 1 {
		t.Errorf("binds %+v, want the pod's", r.Binds)
	}
}

// TestErrorsOfTheAllocatorEndAttempts: a selector that fails on a device of one node keeps the pod from all,
// as in kube-scheduler. It is told so as of an error, and tried again after its backoff, whatever happens.
func TestErrorsOfTheAllocatorEndAttempts(t *testing.T) {
	advance, core := deviceWorld(t)
	picky := gpuClaim("a", "")
	picky.Spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.attributes["gpu.example"].model == "b"`}}}
	slice := func(node, model string) step.ObjectSet {
		s := testkit.NodeSlice("gpu.example", node).Obj()
		s.Name, s.Spec.Pool.Name = node, node
		s.Spec.Devices = []resourcev1.Device{{Name: "gpu"}}
		if model != "" {
			s.Spec.Devices[0].Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: &model}}
		}
		return step.ObjectSet{Object: s}
	}
	r := advance(slice("n0", ""), slice("n1", "b"), step.ObjectSet{Object: picky}, gpuUser("a", "a"))
	if len(r.Binds) > 0 || len(r.Conditions) != 1 || r.Conditions[0].Reason != "SchedulerError" || r.Conditions[0].Event == nil || r.Conditions[0].Event.Reason != "FailedScheduling" ||
		!strings.HasPrefix(r.Conditions[0].Message, `running "DynamicResources" filter plugin: claim default/a: selector #0 on device gpu.example/n0/gpu: CEL runtime error: no such key: model`) {
		t.Fatalf("binds %+v, conditions %+v, want the error", r.Binds, r.Conditions)
	}
	if d := r.Decisions; len(d) != 1 || d[0].Kind != step.Failed || d[0].Reason != r.Conditions[0].Message || core.Stats().Unschedulable != 0 {
		t.Errorf("decisions %+v, want that the attempt failed", d)
	}
	if r := advance(); len(r.Conditions) > 0 || len(r.Decisions) != 1 || r.Decisions[0].Kind != step.Failed {
		t.Errorf("conditions %+v, decisions %+v, want another attempt, and nothing said anew", r.Conditions, r.Decisions)
	}
	if r := advance(slice("n0", "a")); len(r.Binds) != 1 || r.Binds[0].Node != "n1" {
		t.Errorf("binds %+v, want one to n1", r.Binds)
	}
}

// TestClaimsWhoseDevicesTakeTooLongAreDeallocated: devices with a binding condition that isn't met within
// the profile's timeout keep their pod from every node, and are taken away from its claim. That the time is
// over is seen in the Step in which it is, though the API shows the claim once only. What a user writes into
// the annotation counts for nothing.
func TestClaimsWhoseDevicesTakeTooLongAreDeallocated(t *testing.T) {
	for _, c := range []struct {
		name    string
		ready   bool
		user    bool          // has written the annotation
		shown   time.Duration // when the API shows the claim, after its allocation
		comes   time.Duration // when the pod comes
		removed bool
	}{
		{"in time", false, true, time.Minute, 6 * time.Minute, false},
		{"too late", false, false, time.Minute, 8 * time.Minute, true},
		{"shown too late", false, false, 8 * time.Minute, 8 * time.Minute, true},
		{"ready", true, false, time.Minute, 8 * time.Minute, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			advance, _ := deviceWorld(t)
			claim := gpuClaim("a", "n0", "pod-a")
			r := &claim.Status.Allocation.Devices.Results[0]
			r.BindingConditions = []string{"Attached"}
			allocated := time.Unix(1020, 0) // now
			claim.Status.Allocation.AllocationTimestamp = &metav1.Time{Time: allocated}
			if c.user {
				claim.Annotations = map[string]string{cluster.AnnBindingTimedOut: "true"}
			}
			if c.ready {
				claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: r.Driver, Pool: r.Pool, Device: r.Device, Conditions: []metav1.Condition{{Type: "Attached", Status: metav1.ConditionTrue}}}}
			}
			var ready step.Ready
			for after := 20 * time.Second; after <= c.comes; after += 20 * time.Second {
				switch after {
				case c.shown:
					ready = advance(step.ObjectSet{Object: claim})
					over := allocated.Add(7*time.Minute + 1)
					if want := c.shown < 7*time.Minute; want != ready.NextWake.Equal(over) {
						t.Errorf("the next Step is at %s, want it when the time is over, %s: %v", ready.NextWake, over, want)
					}
				default:
					advance()
				}
			}
			ready = advance(gpuUser("a", "a"))
			if len(ready.Deallocations) == 1 != c.removed || len(ready.Binds) == 1 == c.removed {
				t.Errorf("binds %+v, deallocations %+v, want the devices taken away: %v", ready.Binds, ready.Deallocations, c.removed)
			}
		})
	}
}
