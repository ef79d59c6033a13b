package dynamicresources_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/plugins/dynamicresources"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

var plugin = rt.Is(dynamicresources.Plugin{})

func claims(p *testkit.PodBuilder) *testkit.PodBuilder {
	p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, v1.PodResourceClaim{Name: "gpu"})
	return p
}

// devices is the DeviceClass gpus, which backs example.com/gpu, and the DeviceClass bare, which backs
// no resource but that of its implicit name.
var devices = rt.Objects{testkit.DeviceClass("gpus", "example.com/gpu"), testkit.DeviceClass("bare", "")}

const noDevices = "Final: this version of Berth cannot allocate devices of DeviceClass gpus for example.com/gpu"

func TestFilter(t *testing.T) {
	nodes := rt.Nodes{testkit.Node("none"), testkit.Node("plugin").Alloc("example.com/gpu", "1"), testkit.Node("broken").Alloc("example.com/gpu", "0")}
	rt.Table{Plugin: plugin, Nodes: nodes, Objects: devices, Cases: []rt.Case{
		{Name: "no resource claims", Pod: testkit.Pod("p").Req("cpu", "1"), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "a resource claim", Pod: claims(testkit.Pod("p")), Want: rt.Want{rt.All: rt.Everywhere("this version of Berth cannot place pods that use resource claims")}},
		{Name: "a resource that no class backs", Pod: testkit.Pod("p").Req("example.com/fpga", "1"), Want: rt.Want{rt.All: rt.OK}},
		{Name: "a resource that a class backs, where no device plugin offers it", Pod: testkit.Pod("p").Req("example.com/gpu", "1"),
			Want: rt.Want{"none": noDevices, "broken": noDevices, "plugin": rt.OK}},
		{Name: "more than the device plugin offers is NodeResourcesFit's to reject", Pod: testkit.Pod("p").Req("example.com/gpu", "2"),
			Want: rt.Want{"none": noDevices, "broken": noDevices, "plugin": rt.OK}},
		{Name: "the implicit name of a class", Pod: testkit.Pod("p").Req("deviceclass.resource.kubernetes.io/bare", "1"),
			Want: rt.Want{rt.All: "Final: this version of Berth cannot allocate devices of DeviceClass bare for deviceclass.resource.kubernetes.io/bare"}},
		{Name: "the implicit name of a class that doesn't exist", Pod: testkit.Pod("p").Req("deviceclass.resource.kubernetes.io/gone", "1"), Want: rt.Want{rt.All: rt.OK}},
	}}.Filter(t)
}

func TestSignature(t *testing.T) {
	rt.Signatures{Plugin: plugin, Pod: func() *testkit.PodBuilder { return testkit.Pod("p") }, Cases: []rt.Change{
		rt.Differs("name, label", func(p *testkit.PodBuilder) { p.Name = "q"; p.Label("app", "web") }, rt.Same),
		rt.Differs("CPU", func(p *testkit.PodBuilder) { p.Req("cpu", "2") }, rt.Same),
		rt.Differs("a resource claim", func(p *testkit.PodBuilder) { claims(p) }, rt.Group),
		rt.Differs("an extended resource", func(p *testkit.PodBuilder) { p.Req("example.com/gpu", "1") }, rt.Local),
	}}.Run(t)
	rt.Signatures{Plugin: plugin, Pod: func() *testkit.PodBuilder { return claims(testkit.Pod("p").Req("example.com/gpu", "1")) }, Cases: []rt.Change{
		rt.Differs("one more resource claim", func(p *testkit.PodBuilder) { claims(p) }, rt.Same),
		rt.Differs("more of the extended resource", func(p *testkit.PodBuilder) { p.Req("example.com/gpu", "2") }, rt.Same),
	}}.Run(t)
}
