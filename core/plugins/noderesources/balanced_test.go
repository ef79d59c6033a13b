package noderesources_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins/noderesources"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

func balanced(names ...string) rt.Make {
	var list []noderesources.ResourceWeight
	for _, n := range names {
		list = append(list, noderesources.ResourceWeight{Name: v1.ResourceName(n), Weight: 1})
	}
	return func(*cluster.Schema) framework.Plugin { return noderesources.NewBalanced(list) }
}

// A node scores 50 + (50 + evenness with the pod − evenness without it) / 2, cut.
// Evenness is 100 less the standard deviation of the used parts, in percent; of
// two that is half their difference. Node n has 4 CPUs and 8Gi.
func TestBalancedAllocation(t *testing.T) {
	three := balanced("cpu", "memory", "example.com/gpu")
	gpus := rt.Nodes{node().Alloc("example.com/gpu", "4")}
	rt.Table{Plugin: balanced(), Nodes: rt.Nodes{node()}, Cases: []rt.Case{
		{Name: "a pod that requests nothing", Pod: pod(), Want: one(rt.Skip)},
		{Name: "a pod that requests zero", Pod: pod("cpu", "0"), Want: one(rt.Skip)},
		{Name: "a pod that requests something else", Pod: pod("example.com/gpu", "1"), Nodes: gpus, Want: one(rt.Skip)},
		{Name: "even before and after", Pod: pod("cpu", "1", "memory", "2Gi"), Want: one("75")},
		{Name: "as uneven after as before", Pod: pod("cpu", "1", "memory", "2Gi"), Pods: rt.Pods{placed("cpu", "2")}, Want: one("75")},
		{Name: "less even: 50 % and 25 %", Pod: pod("cpu", "2", "memory", "2Gi"), Want: one("68")},                                   // 87, 100
		{Name: "as uneven as can be", Pod: pod("cpu", "4"), Want: one("50")},                                                         // 50, 100
		{Name: "as even as can be", Pod: pod("memory", "8Gi"), Pods: rt.Pods{placed("cpu", "4")}, Want: one("100")},                  // 100, 50
		{Name: "more even", Pod: pod("memory", "2Gi"), Pods: rt.Pods{placed("cpu", "2")}, Want: one("81")},                           // 87, 75
		{Name: "from uneven to uneven the other way", Pod: pod("memory", "8Gi"), Pods: rt.Pods{placed("cpu", "2")}, Want: one("75")}, // 75, 75
		{Name: "what other pods request counts as it is, without defaults", Pod: pod("cpu", "1", "memory", "2Gi"), Pods: rt.Times(4, placed()), Want: one("75")},
		{Name: "more than there is counts as all", Pod: pod("cpu", "4", "memory", "8Gi"), Pods: rt.Pods{placed("cpu", "2", "memory", "2Gi")}, Want: one("81")}, // 100, 87
		{Name: "more than there was counts as all", Pod: pod("memory", "4Gi"), Pods: rt.Pods{placed("cpu", "8", "memory", "8Gi")}, Want: one("75")},            // 100, 100
		{Name: "one resource is always even", Plugin: balanced("cpu"), Pod: pod("cpu", "3", "memory", "1Gi"), Want: one("75")},
		{Name: "a node without memory", Pod: pod("cpu", "3"), Nodes: rt.Nodes{testkit.Node("n").Alloc("cpu", "4")}, Want: one("75")},
		{Name: "three resources", Plugin: three, Nodes: gpus, Pod: pod("cpu", "1", "memory", "2Gi", "example.com/gpu", "4"), Want: one("57")},                                                           // 64, 100
		{Name: "three resources, more even", Plugin: three, Nodes: gpus, Pod: pod("cpu", "2", "memory", "4Gi", "example.com/gpu", "1"), Pods: rt.Pods{placed("example.com/gpu", "3")}, Want: one("81")}, // 76, 64
		{Name: "an extended resource that the pod doesn't request doesn't count", Plugin: three, Nodes: gpus, Pod: pod("cpu", "1", "memory", "2Gi"), Pods: rt.Pods{placed("example.com/gpu", "4")}, Want: one("75")},
		{Name: "what doesn't count may come first", Plugin: balanced("example.com/gpu", "cpu", "memory"), Pod: pod("cpu", "4"), Want: one("50")},
		{Name: "requests of the pod as a whole count", Pod: pod("cpu", "1", "memory", "2Gi").WholeReq("cpu", "4", "memory", "2Gi"), Want: one("56")}, // 62, 100
	}}.Score(t)
	rt.Table{Scores: true, Plugin: balanced(), Nodes: rt.Nodes{node()}, Cases: []rt.Case{
		{Name: "it rejects nothing", Pod: pod("cpu", "9"), Want: one(rt.OK)},
	}}.Filter(t)
}

func TestBalancedSignature(t *testing.T) {
	rt.Signatures{Plugin: balanced(), Pod: func() *testkit.PodBuilder { return pod("cpu", "1") }, Cases: []rt.Change{
		rt.Differs("name", func(p *testkit.PodBuilder) { p.Name = "q" }, rt.Same),
		rt.Differs("cpu", func(p *testkit.PodBuilder) { p.Req("cpu", "2") }, rt.Local),
		rt.Differs("memory", func(p *testkit.PodBuilder) { p.Req("memory", "2") }, rt.Local),
		rt.Differs("zero memory", func(p *testkit.PodBuilder) { p.Req("memory", "0") }, rt.Same),
		rt.Differs("a container that requests nothing", func(p *testkit.PodBuilder) { p.Container() }, rt.Same),
	}}.Run(t)
}
