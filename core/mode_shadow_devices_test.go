package core_test

import (
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// deviceShadow is a shadow of a cluster with a large and a small node of one device each, and one without.
func deviceShadow(t *testing.T) *shadow {
	t.Helper()
	s := newShadow(t, func(*core.Config) {})
	class := testkit.DeviceClass("gpus", gpu)
	class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.example"`}}}
	in := []step.Input{step.ObjectSet{Object: class}}
	for node, cpu := range map[string]string{"large": "32", "small": "4", "none": "64"} {
		in = append(in, step.NodeSet{Node: testkit.Node(node).Alloc("cpu", cpu, "memory", "64Gi", "pods", "10").Obj()})
		if node == "none" {
			continue
		}
		x := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}}
		x.Spec = resourcev1.ResourceSliceSpec{Driver: "gpu.example", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}, Devices: []resourcev1.Device{{Name: "gpu"}}}
		in = append(in, step.ObjectSet{Object: x})
	}
	s.after(0, in...)
	return s
}

// bound returns a pod as it is on a node.
func bound(in step.PodSet, node string) step.PodSet {
	p := in.Pod.DeepCopy()
	p.Spec.NodeName = node
	return step.PodSet{Pod: p}
}

// extendedClaim returns the claim that another scheduler has made for the extended resource of a pod.
func extendedClaim(pod, node string) *resourcev1.ResourceClaim {
	c := gpuClaim(pod+"-extended", node, types.UID("pod-"+pod))
	yes := true
	c.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod, UID: types.UID("pod-" + pod), Controller: &yes}}
	return c
}

// TestAShadowJudgesDevices: the other scheduler allocates a claim before it binds the pod. It is judged by what was
// free then: a claim that has its devices leaves no choice, and any placement would be the best.
func TestAShadowJudgesDevices(t *testing.T) {
	claimed, asking := gpuUser("p", "c"), step.PodSet{Pod: testkit.Pod("p").Req("cpu", "1", gpu, "1").Obj()}
	for _, c := range []struct {
		name, node, want string
		pod              step.PodSet
		made             step.Input // what the other writes before it binds
	}{
		{"on Berth's node", "large", "p same", claimed, step.ObjectSet{Object: gpuClaim("c", "large", "pod-p")}},
		{"on a worse one", "small", "p worse", claimed, step.ObjectSet{Object: gpuClaim("c", "small", "pod-p")}},
		{"on one without a device", "none", "p notAllowed by DynamicResources", claimed, step.ObjectSet{Object: gpuClaim("c", "none", "pod-p")}},
		{"extended, on Berth's node", "large", "p same", asking, step.ObjectSet{Object: extendedClaim("p", "large")}},
		{"extended, on a worse one", "small", "p worse", asking, step.ObjectSet{Object: extendedClaim("p", "small")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := deviceShadow(t)
			s.after(time.Second, step.ObjectSet{Object: gpuClaim("c", "")}, c.pod)
			if on := s.Core().State().NodeOf("pod-p"); on == nil || on.Name != "large" {
				t.Fatalf("the shadow puts the pod on %v, want large", on)
			}
			s.after(time.Second, c.made)
			s.after(20*time.Second, bound(c.pod, c.node))
			if got := s.verdicts(); got != c.want {
				t.Errorf("the verdict is %q, want %q", got, c.want)
			}
			if r := s.Core().ShadowReport(); len(r.Differences) > 0 && r.Differences[0].BerthNode != "large" {
				t.Errorf("Berth chooses %s, want large", r.Differences[0].BerthNode)
			}
			if left := s.Core().Unsettled(); len(left) > 0 {
				t.Errorf("what is left over: %q", left)
			}
		})
	}
}

// TestAShadowKeepsNoDevices: what a decision has reserved of a claim is free again when its pod is gone, whichever of
// the pods that share the claim goes first, and so is what extended resources took.
func TestAShadowKeepsNoDevices(t *testing.T) {
	for _, order := range [][]types.UID{{"pod-a", "pod-b"}, {"pod-b", "pod-a"}} {
		s := deviceShadow(t)
		s.after(time.Second, step.ObjectSet{Object: gpuClaim("shared", "")}, gpuUser("a", "shared"), gpuUser("b", "shared"),
			step.PodSet{Pod: testkit.Pod("x").Req("cpu", "1", gpu, "1").Obj()})
		if a, b := s.Core().State().NodeOf("pod-a"), s.Core().State().NodeOf("pod-b"); a == nil || a != b || s.Core().State().NodeOf("pod-x") == nil {
			t.Fatalf("the pods count as being on %v and %v, want on one node, and the other device taken", a, b)
		}
		s.after(time.Second, step.PodGone{UID: order[0]})
		if c := s.Core().State().ResourceClaim("default", "shared"); c.Status.Allocation == nil || len(c.Status.ReservedFor) != 1 || c.Status.ReservedFor[0].UID != order[1] {
			t.Errorf("when %s is gone the claim has %+v, want the device for the other", order[0], c.Status)
		}
		s.after(time.Second, step.PodGone{UID: order[1]}, step.PodGone{UID: "pod-x"})
		if c := s.Core().State().ResourceClaim("default", "shared"); c.Status.Allocation != nil {
			t.Errorf("when both are gone the claim has %+v", c.Status)
		}
		// Both devices are free.
		s.after(time.Second, step.ObjectSet{Object: gpuClaim("c", "")}, step.ObjectSet{Object: gpuClaim("d", "")}, gpuUser("c", "c"), gpuUser("d", "d"))
		if c, d := s.Core().State().NodeOf("pod-c"), s.Core().State().NodeOf("pod-d"); c == nil || d == nil {
			t.Errorf("the next pods count as being on %v and %v, want on a node each", c, d)
		}
	}
}

// TestAShadowJudgesWhatOthersHave: devices that other pods have are taken, also those that share a claim.
func TestAShadowJudgesWhatOthersHave(t *testing.T) {
	s := deviceShadow(t)
	s.after(time.Second, step.ObjectSet{Object: gpuClaim("shared", "")}, gpuUser("a", "shared"), gpuUser("b", "shared"))
	s.after(time.Second, step.ObjectSet{Object: gpuClaim("shared", "small", "pod-a")}, bound(gpuUser("a", "shared"), "small"))
	if got := s.verdicts(); got != "a worse" {
		t.Errorf("the first of those that share: %q, want worse", got)
	}
	// The second has no choice any more.
	s.after(time.Second, step.ObjectSet{Object: gpuClaim("shared", "small", "pod-a", "pod-b")}, bound(gpuUser("b", "shared"), "small"))
	if got := s.verdicts(); got != "b same" {
		t.Errorf("the second of those that share: %q, want the same", got)
	}
	// The last device goes to one pod, and another waits.
	s.after(time.Second, step.ObjectSet{Object: gpuClaim("c", "")}, step.ObjectSet{Object: gpuClaim("d", "")}, gpuUser("c", "c"), gpuUser("d", "d"))
	s.after(time.Second, step.ObjectSet{Object: gpuClaim("d", "large", "pod-d")}, bound(gpuUser("d", "d"), "large"))
	if got := s.verdicts(); got != "d same" {
		t.Errorf("the last device: %q, want the same", got)
	}
}
