package dynamicresources_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/plugins/dynamicresources"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

var plugin = rt.Is(dynamicresources.New(1000))

// class returns a device class of all devices of a driver.
func class(name, driver, resource string) *resourcev1.DeviceClass {
	c := testkit.DeviceClass(name, resource)
	c.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}}}
	return c
}

// slice returns the devices of a node's pool.
func slice(node string, devices ...string) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{}
	s.Name = node + "-gpus"
	s.Spec = resourcev1.ResourceSliceSpec{Driver: "gpu.example", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}}
	for _, d := range devices {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: d})
	}
	return s
}

// claim returns a claim for devices of a class.
func claim(name, class string, count int64) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{}
	c.Namespace, c.Name, c.UID = "default", name, types.UID("claim-"+name)
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class,
		AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}}}
	return c
}

// had returns a claim that has devices of a node.
func had(c *resourcev1.ResourceClaim, node string, devices ...string) *resourcev1.ResourceClaim {
	c.Status.Allocation = &resourcev1.AllocationResult{NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{node}}}}}}}
	for _, d := range devices {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results,
			resourcev1.DeviceRequestAllocationResult{Request: "gpu", Driver: "gpu.example", Pool: node, Device: d})
	}
	return c
}

// with has a pod name claims.
func with(p *testkit.PodBuilder, claims ...string) *testkit.PodBuilder {
	for _, c := range claims {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, v1.PodResourceClaim{Name: c, ResourceClaimName: &c})
	}
	return p
}

func pod() *testkit.PodBuilder { return testkit.Pod("p") }

var (
	nodes   = rt.Nodes{testkit.Node("two"), testkit.Node("one"), testkit.Node("none"), testkit.Node("plugin").Alloc("example.com/gpu", "1")}
	objects = rt.Objects{class("gpus", "gpu.example", "example.com/gpu"), class("bare", "gpu.example", ""),
		slice("two", "g0", "g1"), slice("one", "g0", "g1"), had(claim("taken", "gpus", 1), "one", "g0"),
		claim("small", "gpus", 1), claim("small2", "gpus", 1), claim("pair", "gpus", 2), claim("unknown", "gone", 1)}
)

const (
	full = "Final: cannot allocate all claims"
	away = "Final: resourceclaim not available on the node"
)

func TestFilter(t *testing.T) {
	deleted := claim("deleted", "gpus", 1)
	deleted.DeletionTimestamp = &testkit.Node("x").CreationTimestamp
	rt.Table{Plugin: plugin, Nodes: nodes, Objects: append(slices.Clone(objects), deleted), Cases: []rt.Case{
		{Name: "no claim", Pod: pod().Req("cpu", "1"), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "one device", Pod: with(pod(), "small"), Want: rt.Want{"two": rt.OK, "one": rt.OK, "none": full, "plugin": full}},
		{Name: "two of one claim", Pod: with(pod(), "pair"), Want: rt.Want{"two": rt.OK, "one": full, "none": full, "plugin": full}},
		{Name: "two of two claims", Pod: with(pod(), "small", "small2"), Want: rt.Want{"two": rt.OK, "one": full, "none": full, "plugin": full}},
		{Name: "three", Pod: with(pod(), "small", "pair"), Want: rt.Want{rt.All: full}},
		{Name: "a claim with devices", Pod: with(pod(), "taken"), Want: rt.Want{"one": rt.OK, rt.All: away}},
		{Name: "a claim with devices, and another", Pod: with(pod(), "taken", "small"), Want: rt.Want{"one": rt.OK, "two": away, "none": full, "plugin": full}},
		{Name: "a claim that isn't there", Pod: with(pod(), "missing"), Want: rt.Want{rt.All: rt.Everywhere(`could not find ResourceClaim "default/missing"`)}},
		{Name: "a claim that is being deleted", Pod: with(pod(), "deleted"), Want: rt.Want{rt.All: rt.Everywhere(`resourceclaim "deleted" is being deleted`)}},
		{Name: "a claim of a class that isn't there", Pod: with(pod(), "unknown"), Want: rt.Want{rt.All: rt.Everywhere("request gpu: device class gone does not exist")}},
		{Name: "a resource that a class backs", Pod: pod().Req("example.com/gpu", "1"), Want: rt.Want{"two": rt.OK, "one": rt.OK, "none": full, "plugin": rt.OK}},
		{Name: "two of a resource that a class backs", Pod: pod().Req("example.com/gpu", "2"), Want: rt.Want{"two": rt.OK, "one": full, "none": full, "plugin": rt.OK}},
		{Name: "the implicit name of a class", Pod: pod().Req("deviceclass.resource.kubernetes.io/bare", "2"), Want: rt.Want{"two": rt.OK, rt.All: full}},
		{Name: "a resource that no class backs", Pod: pod().Req("example.com/fpga", "1"), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "a resource and a claim", Pod: with(pod().Req("example.com/gpu", "1"), "small"), Want: rt.Want{"two": rt.OK, rt.All: full}},
	}}.Filter(t)
}

func TestSignature(t *testing.T) {
	// Pods of one Job have claims of their own that ask for the same.
	rt.Signatures{Plugin: plugin, Objects: objects, Pod: func() *testkit.PodBuilder { return with(pod(), "small") }, Cases: []rt.Change{
		rt.Differs("name, label", func(p *testkit.PodBuilder) { p.Name = "q"; p.Label("app", "web") }, rt.Same),
		rt.Differs("a claim that asks for the same", func(p *testkit.PodBuilder) { p.Spec.ResourceClaims = nil; with(p, "small2") }, rt.Same),
		rt.Differs("a claim that asks for more", func(p *testkit.PodBuilder) { p.Spec.ResourceClaims = nil; with(p, "pair") }, rt.Local),
		rt.Differs("a claim that has devices", func(p *testkit.PodBuilder) { p.Spec.ResourceClaims = nil; with(p, "taken") }, rt.Local),
		rt.Differs("one more claim", func(p *testkit.PodBuilder) { with(p, "small2") }, rt.Local),
		rt.Differs("an extended resource", func(p *testkit.PodBuilder) { p.Req("example.com/gpu", "1") }, rt.Local),
		rt.Differs("one that no class backs", func(p *testkit.PodBuilder) { p.Req("example.com/fpga", "1") }, rt.Same),
	}}.Run(t)
	elsewhere := append(slices.Clone(objects), had(claim("elsewhere", "gpus", 1), "two", "g0"))
	rt.Signatures{Plugin: plugin, Objects: elsewhere, Pod: func() *testkit.PodBuilder { return with(pod(), "taken") }, Cases: []rt.Change{
		rt.Differs("a claim that has devices on another node", func(p *testkit.PodBuilder) { p.Spec.ResourceClaims = nil; with(p, "elsewhere") }, rt.Local),
	}}.Run(t)
}

// TestAssumeAndRelease places pods one after the other, and takes them away: what is reserved and which
// devices are taken is written down after each.
func TestAssumeAndRelease(t *testing.T) {
	schema := cluster.NewSchema()
	s := cluster.New(schema)
	for _, n := range nodes {
		s.SetNode(schema.ParseNode(n.Obj(), ""))
	}
	for _, o := range objects {
		s.SetObject(o.(cluster.Object))
	}
	p := dynamicresources.New(1000)
	before := dump(s)
	var pods []*cluster.Pod
	step := func(node string, b *testkit.PodBuilder, want string) {
		t.Helper()
		pod := schema.ParsePod(b.Obj())
		pods = append(pods, pod)
		p.Assume(pod, s.NodeByName(node), s)
		if got := taken(s); got != want {
			t.Errorf("%s on %s:\n got  %s\n want %s", pod.Name(), node, got, want)
		}
	}
	mark := s.Mark()
	step("two", with(testkit.Pod("a"), "small"), "small=two/g0:a taken=one/g0:")
	step("two", with(testkit.Pod("b"), "small"), "small=two/g0:a,b taken=one/g0:")
	step("two", testkit.Pod("c").Req("example.com/gpu", "1"), "c-extended-resources-4bd4e6131c=two/g1:c small=two/g0:a,b taken=one/g0:")
	step("one", with(testkit.Pod("d"), "small2"), "c-extended-resources-4bd4e6131c=two/g1:c small=two/g0:a,b small2=one/g1:d taken=one/g0:")
	for _, pod := range pods {
		p.Release(pod, s)
	}
	if got, want := taken(s), "taken=one/g0:"; got != want {
		t.Errorf("after all pods have gone: %s, want %s", got, want)
	}
	s.Rollback(mark)
	if got := dump(s); got != before {
		t.Errorf("rolled back:\n%s\nbefore:\n%s", got, before)
	}
}

func dump(s *cluster.State) string {
	var b strings.Builder
	s.Dump(&b)
	return b.String()
}

// taken lists the claims with devices: which these are, and for whom they are reserved.
func taken(s *cluster.State) string {
	var out []string
	for _, o := range s.Objects() {
		c, ok := o.(*resourcev1.ResourceClaim)
		if !ok || c.Status.Allocation == nil {
			continue
		}
		var devices, pods []string
		for _, r := range c.Status.Allocation.Devices.Results {
			devices = append(devices, r.Pool+"/"+r.Device)
		}
		for _, r := range c.Status.ReservedFor {
			pods = append(pods, r.Name)
		}
		out = append(out, c.Name+"="+strings.Join(devices, ",")+":"+strings.Join(pods, ","))
	}
	return strings.Join(out, " ")
}
