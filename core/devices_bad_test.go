package core_test

import (
	"fmt"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file has what drivers and users do to devices and claims that nobody should: what the pod is told names the
// object, nobody else suffers, and what is repaired works again.

// costly is an expression that takes more steps than the API allows when it is evaluated, and compiles.
var costly = func() string {
	list := "[" + strings.TrimSuffix(strings.Repeat("1,", 100), ",") + "]"
	return fmt.Sprintf("%[1]s.all(a, %[1]s.all(b, %[1]s.all(c, a + b + c == 3)))", list)
}()

// TestBadExpressionsAreNamed: an expression that doesn't compile, that fails or that costs too much ends the attempt of
// the pod that brings it, and the error names its claim. Another pod gets its device. Of nodes that are alike one is
// asked about, and attempt after attempt it isn't asked again but for the words.
func TestBadExpressionsAreNamed(t *testing.T) {
	for _, c := range []struct{ name, expression, want string }{
		{"costly", costly, "claim default/bad: selector #0 on device gpu.example/n0/gpu: CEL runtime error: operation cancelled: actual cost limit exceeded"},
		{"doesn't compile", "device.driver ==", "claim default/bad: selector #0: CEL compile error"},
		{"isn't a condition", `device.driver`, "claim default/bad: selector #0: CEL compile error"},
		{"divides by nothing", "1 / size(device.attributes) == 0 && 1 / 0 == 1", "claim default/bad: selector #0 on device gpu.example/n0/gpu: CEL runtime error: division by zero"},
	} {
		t.Run(c.name, func(t *testing.T) {
			advance, core := deviceWorld(t)
			bad := gpuClaim("bad", "")
			bad.Spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: c.expression}}}
			r := advance(step.ObjectSet{Object: bad}, gpuUser("bad", "bad"), step.ObjectSet{Object: gpuClaim("good", "")}, gpuUser("good", "good"))
			if len(r.Binds) != 1 || r.Binds[0].Name != "good" {
				t.Errorf("binds %+v, want good's", r.Binds)
			}
			if len(r.Conditions) != 1 || !strings.Contains(r.Conditions[0].Message, c.want) {
				t.Fatalf("conditions %+v, want one with %q", r.Conditions, c.want)
			}
			asks := core.State().Devices().Asks()
			for range 5 {
				advance()
			}
			// Each attempt asks once about each node's words, of which there are two.
			if more := core.State().Devices().Asks() - asks; more > 10 {
				t.Errorf("%d questions in 5 attempts, want at most 2 each", more)
			}
			if r := advance(step.ObjectSet{Object: gpuClaim("bad", "")}); len(r.Binds) != 1 || r.Binds[0].Name != "bad" {
				t.Errorf("binds %+v, want the pod's, whose claim is repaired", r.Binds)
			}
		})
	}
}

// TestSelectorsThatCostTooMuch: the selectors of a pod's claim use up what a question may cost. No node takes the pod, the
// reason names the claim, others get their devices, and attempt after attempt nothing is evaluated again.
func TestSelectorsThatCostTooMuch(t *testing.T) {
	advance, core := deviceWorldWith(t, plugins.Options{DeviceSteps: 10})
	list := "[" + strings.TrimSuffix(strings.Repeat("1,", 40), ",") + "]"
	bad := gpuClaim("bad", "")
	bad.Spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("%[1]s.all(a, %[1]s.all(b, a + b == 2))", list)}}}
	r := advance(step.ObjectSet{Object: bad}, gpuUser("bad", "bad"), step.ObjectSet{Object: gpuClaim("good", "")}, gpuUser("good", "good"))
	if len(r.Binds) != 1 || r.Binds[0].Name != "good" {
		t.Errorf("binds %+v, want good's", r.Binds)
	}
	const want = "0/2 nodes are available: 2 claim default/bad: its selectors cost too much to evaluate on the devices of a node; they must be simpler."
	if len(r.Conditions) != 1 || !strings.HasPrefix(r.Conditions[0].Message, want) {
		t.Errorf("conditions %+v, want one with %q", r.Conditions, want)
	}
	x, _ := core.View().Explain("default", "bad")
	if len(x.Details) != 2 || !strings.HasPrefix(x.Details[1].Text, "claim default/bad: its selectors cost too much") {
		t.Errorf("details %+v, want the claim's cost", x.Details)
	}
	asks := core.State().Devices().Asks()
	for range 5 {
		advance(step.NodeSet{Node: testkit.Node("n0").Label("touched", fmt.Sprint(asks)).Alloc("cpu", "4", "memory", "8Gi").Obj()})
	}
	if more := core.State().Devices().Asks() - asks; more != 0 {
		t.Errorf("%d more questions, want none: the devices are the same", more)
	}
}

// TestClaimsEditedByHand: users who may write a claim's status write what no scheduler would. Who it concerns waits or
// runs on, devices that don't exist keep nobody else from theirs, and nothing is bound without its devices.
func TestClaimsEditedByHand(t *testing.T) {
	other := func(driver, pool, device string) func(*resourcev1.ResourceClaim) {
		return func(c *resourcev1.ResourceClaim) {
			c.Status.Allocation.Devices.Results[0] = resourcev1.DeviceRequestAllocationResult{Request: "gpu", Driver: driver, Pool: pool, Device: device}
		}
	}
	for _, c := range []struct {
		name   string
		edit   func(*resourcev1.ResourceClaim) // of a claim that has n0's device
		user   string                          // where the pod that uses it is placed, "" for nowhere
		others int                             // how many of two other pods get a device
	}{
		{"a device that isn't published", other("gpu.example", "n0", "none"), "n0", 2},
		{"a pool that isn't published", other("gpu.example", "none", "gpu"), "n0", 2},
		{"a driver that there is not", other("none", "n0", "gpu"), "n0", 2},
		{"a request that there is not", func(c *resourcev1.ResourceClaim) { c.Status.Allocation.Devices.Results[0].Request = "none" }, "n0", 1},
		{"one device twice", func(c *resourcev1.ResourceClaim) {
			d := &c.Status.Allocation.Devices
			d.Results = append(d.Results, d.Results[0])
		}, "n0", 1},
		{"no device at all", func(c *resourcev1.ResourceClaim) { c.Status.Allocation.Devices.Results = nil }, "n0", 2},
		{"every node", func(c *resourcev1.ResourceClaim) { c.Status.Allocation.NodeSelector = nil }, "n0 or n1", 1},
		{"a node that there is not", func(c *resourcev1.ResourceClaim) {
			c.Status.Allocation.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values[0] = "none"
		}, "", 2}, // it is taken away from the claim, which nobody uses
		{"a selector that can't be read", func(c *resourcev1.ResourceClaim) {
			c.Status.Allocation.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Operator = "Near"
		}, "", 2},
		{"reserved for pods that never were", func(c *resourcev1.ResourceClaim) {
			c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "x", UID: "x"}, {APIGroup: "example.com", Resource: "things", Name: "y", UID: "y"}}
		}, "n0", 1},
		{"reserved without devices", func(c *resourcev1.ResourceClaim) {
			c.Status.Allocation, c.Status.ReservedFor = nil, []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "x", UID: "x"}}
		}, "n0 or n1", 1},
		{"conditions of devices that it hasn't", func(c *resourcev1.ResourceClaim) {
			c.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: "none", Pool: "none", Device: "none", Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}}}
		}, "n0", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			advance, _ := deviceWorld(t)
			claim := gpuClaim("edited", "n0")
			c.edit(claim)
			r := advance(step.ObjectSet{Object: claim}, gpuUser("user", "edited"))
			at := ""
			for _, b := range r.Binds {
				at = b.Node
			}
			if (at == "") != (c.user == "") || at != "" && !strings.Contains(c.user, at) {
				t.Errorf("the pod is placed on %q, want %q; conditions %+v, deallocations %+v", at, c.user, r.Conditions, r.Deallocations)
			}
			if at == "" { // as the worker writes it
				if len(r.Deallocations) != 1 || r.Deallocations[0].Name != "edited" {
					t.Fatalf("deallocations %+v, want the claim's", r.Deallocations)
				}
				advance(step.ObjectGone{Kind: cluster.ResourceClaimKind, Namespace: "default", Name: "edited"})
			}
			r = advance(step.ObjectSet{Object: gpuClaim("a", "")}, gpuUser("a", "a"), step.ObjectSet{Object: gpuClaim("b", "")}, gpuUser("b", "b"))
			if len(r.Binds) != c.others {
				t.Errorf("binds %+v, want %d", r.Binds, c.others)
			}
		})
	}
}

// TestAClaimEditedWhileItsPodRuns: the devices of a bound pod are taken away from its claim by hand. The pod runs on,
// and what it had is free, as the API says: kube-scheduler goes by nothing else.
func TestAClaimEditedWhileItsPodRuns(t *testing.T) {
	advance, _ := deviceWorld(t)
	running := gpuUser("running", "a")
	running.Pod.Spec.NodeName = "n0"
	advance(step.ObjectSet{Object: gpuClaim("a", "n0", "pod-running")}, running)
	r := advance(step.ObjectSet{Object: gpuClaim("b", "")}, gpuUser("b", "b"), step.ObjectSet{Object: gpuClaim("c", "")}, gpuUser("c", "c"))
	if len(r.Binds) != 1 {
		t.Fatalf("binds %+v, want one: n0's device is taken", r.Binds)
	}
	if r := advance(step.ObjectSet{Object: gpuClaim("a", "")}); len(r.Binds) != 1 || r.Binds[0].Node != "n0" {
		t.Errorf("binds %+v, want one to n0, whose device the claim has no more", r.Binds)
	}
}

// TestDriversThatVanish: a driver withdraws everything. Pods with devices stay, others wait and are told why, and when
// the driver is back what was taken is taken.
func TestDriversThatVanish(t *testing.T) {
	advance, core := deviceWorld(t)
	running := gpuUser("running", "a")
	running.Pod.Spec.NodeName = "n0"
	advance(step.ObjectSet{Object: gpuClaim("a", "n0", "pod-running")}, running)
	slice := func(node string) *resourcev1.ResourceSlice {
		s := testkit.NodeSlice("gpu.example", node).Devices(testkit.Device("gpu")).Obj()
		s.Name = node
		return s
	}
	advance(step.ObjectGone{Kind: cluster.ResourceSliceKind, Name: "n0"}, step.ObjectGone{Kind: cluster.ResourceSliceKind, Name: "n1"})
	r := advance(step.ObjectSet{Object: gpuClaim("b", "")}, gpuUser("b", "b"), step.ObjectSet{Object: gpuClaim("c", "")}, gpuUser("c", "c"))
	if len(r.Binds)+len(r.Deallocations) > 0 || len(r.Conditions) != 2 || !strings.Contains(r.Conditions[0].Message, "2 cannot allocate all claims") {
		t.Errorf("binds %+v, deallocations %+v, conditions %+v, want that both wait", r.Binds, r.Deallocations, r.Conditions)
	}
	if x, _ := core.View().Explain("default", "b"); len(x.Details) != 1 || x.Details[0].Text != "claim b, request gpu: there is no device of class gpus" {
		t.Errorf("details %+v, want that no device is there", x.Details)
	}
	r = advance(step.ObjectSet{Object: slice("n0")}, step.ObjectSet{Object: slice("n1")})
	if len(r.Binds) != 1 || r.Binds[0].Node != "n1" {
		t.Errorf("binds %+v, want one to n1: n0's device is taken", r.Binds)
	}
}

// TestNamesUsedInSeveralPools: two drivers, and two pools of one of them, have a device of the same name on one node.
// Each is taken by itself.
func TestNamesUsedInSeveralPools(t *testing.T) {
	advance, _ := deviceWorld(t)
	in := []step.Input{step.NodeGone{Name: "n1"}}
	for i, s := range []*resourcev1.ResourceSlice{
		testkit.ResourceSlice("second", "gpu.example", "second").OnNode("n0").Devices(testkit.Device("gpu")).Obj(),
		testkit.ResourceSlice("other", "other.example", "n0").OnNode("n0").Devices(testkit.Device("gpu")).Obj(),
	} {
		in = append(in, step.ObjectSet{Object: s}, step.ObjectSet{Object: gpuClaim(fmt.Sprint("c", i), "")}, gpuUser(fmt.Sprint("p", i), fmt.Sprint("c", i)))
	}
	in = append(in, step.ObjectSet{Object: gpuClaim("c2", "")}, gpuUser("p2", "c2"))
	r := advance(in...)
	got := map[string]bool{}
	for _, b := range r.Binds {
		d := b.DeviceClaims[0].Status.Allocation.Devices.Results[0]
		got[d.Driver+"/"+d.Pool+"/"+d.Device] = true
	}
	if len(r.Binds) != 2 || !got["gpu.example/n0/gpu"] || !got["gpu.example/second/gpu"] {
		t.Errorf("%d binds with %v, want the devices of both pools of gpu.example, once each", len(r.Binds), got)
	}
}

// TestAttributesAtTheirLimits: a device with as many attributes as one may have, as long as they may be, is told apart
// by each of them, and what is said about it stays readable.
func TestAttributesAtTheirLimits(t *testing.T) {
	advance, core := deviceWorld(t)
	long := func(i int) string {
		return fmt.Sprintf("%s%02d", strings.Repeat("a", resourcev1.DeviceMaxIDLength-2), i)
	}
	d := testkit.Device("gpu")
	for i := range resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice {
		d.Attr(strings.Repeat("d", 60)+".example/"+long(i), strings.Repeat("v", resourcev1.DeviceAttributeMaxValueLength))
	}
	s := testkit.NodeSlice("gpu.example", "n0").Devices(d).Obj()
	s.Name = "n0"
	if _, ok := door.Admit(step.ObjectSet{Object: s}, func(p door.Problem) { t.Error(p) }); !ok {
		t.Fatal("a device at its limits is refused")
	}
	wants := func(name, last string) step.ObjectSet {
		c := gpuClaim(name, "")
		expression := fmt.Sprintf(`device.attributes[%q].%s == %q`, strings.Repeat("d", 60)+".example", long(31), strings.Repeat("v", resourcev1.DeviceAttributeMaxValueLength-1)+last)
		c.Spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
		return step.ObjectSet{Object: c}
	}
	advance(step.NodeGone{Name: "n1"}, step.ObjectSet{Object: s}, wants("no", "w"), gpuUser("no", "no"))
	x, _ := core.View().Explain("default", "no")
	if len(x.Details) != 1 || !strings.Contains(x.Details[0].Text, "gpu ("+long(31)+" vvv") || len(x.Details[0].Text) > 1000 {
		t.Errorf("details %+v, want the attribute that the expression names, and no other", x.Details)
	}
	if r := advance(wants("yes", "v"), gpuUser("yes", "yes")); len(r.Binds) != 1 || r.Binds[0].Name != "yes" {
		t.Errorf("binds %+v, want yes's", r.Binds)
	}
}

// TestManyExtendedResources: a pod requests more resources of device classes than a claim has bits to tell nodes apart
// by in advance. Where all are lacking it gets all of them, and where a few are, these; nobody is asked about what no
// node lacks. One that wants more devices than a claim may have isn't placed without them.
func TestManyExtendedResources(t *testing.T) {
	const many = 20
	advance, core := deviceWorld(t)
	n1 := testkit.Node("n1").Alloc("cpu", "4", "memory", "8Gi")
	pod, more := testkit.Pod("p").Req("cpu", "1"), testkit.Pod("more")
	all := testkit.ResourceSlice("many", "many.example", "many").OnNode("n0")
	few := testkit.ResourceSlice("few", "many.example", "few").OnNode("n1")
	var in []step.Input
	for i := range 2 * many {
		class := fmt.Sprint("class", i)
		in = append(in, step.ObjectSet{Object: testkit.DeviceClass(class, "", fmt.Sprintf(`device.driver == "many.example" && device.attributes["many.example"].kind == %d`, i))})
		resource := resourcev1.ResourceDeviceClassPrefix + class
		if more.Req(resource, "1"); i >= many {
			continue
		}
		pod.Req(resource, "1")
		d := testkit.Device(fmt.Sprint("d", i)).Attr("kind", i)
		if all.Devices(d); i < many-3 {
			n1.Alloc(resource, "5")
		} else {
			few.Devices(d)
		}
	}
	in = append(in, step.NodeSet{Node: n1.Obj()}, step.ObjectSet{Object: all.Obj()}, step.ObjectSet{Object: few.Obj()})
	advance(in...)
	asks := core.State().Devices().Asks()
	other := pod.Pod.DeepCopy()
	other.Name, other.UID = "q", "pod-q"
	r := advance(step.PodSet{Pod: pod.Obj()}, step.PodSet{Pod: other}, step.PodSet{Pod: more.Obj()})
	has := map[string]int{}
	for _, b := range r.Binds {
		has[b.Node] = len(b.DeviceClaims[0].Status.Allocation.Devices.Results)
	}
	if len(r.Binds) != 2 || has["n0"] != many || has["n1"] != 3 {
		t.Errorf("%d binds, with devices %v, want %d on n0 and 3 on n1", len(r.Binds), has, many)
	}
	if got := core.State().Devices().Asks() - asks; got > 16 {
		t.Errorf("%d questions, want some for each of three pods and two nodes", got)
	}
	if len(r.Conditions) != 1 || r.Conditions[0].Name != "more" || !strings.Contains(r.Conditions[0].Message, "exceeds the claim limit of 32") {
		t.Errorf("conditions %+v, want that more wants too many devices", r.Conditions)
	}
}
