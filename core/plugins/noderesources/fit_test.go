package noderesources_test

import (
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins/noderesources"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

func fit(args noderesources.FitArgs) rt.Make {
	return func(*cluster.Schema) framework.Plugin { return noderesources.NewFit(args) }
}

// node n has 4 CPUs and 8Gi of memory.
func node() *testkit.NodeBuilder { return testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi") }

func pod(requests ...string) *testkit.PodBuilder { return testkit.Pod("p").Req(requests...) }

// placed is a pod on node n.
func placed(requests ...string) *testkit.PodBuilder { return testkit.Pod("x").Req(requests...).On("n") }

func one(answer string) rt.Want { return rt.Want{"n": answer} }

// Quantities in reasons are milli-CPU and bytes: 1Gi is 1073741824 bytes.
func TestFitFilters(t *testing.T) {
	gpus := func() *testkit.NodeBuilder { return node().Alloc("example.com/gpu", "2") }
	rt.Table{Scores: true, Plugin: fit(noderesources.FitArgs{}), Nodes: rt.Nodes{node()}, Cases: []rt.Case{
		{Name: "fits", Pod: pod("cpu", "1", "memory", "1Gi"), Want: one(rt.OK)},
		{Name: "fits exactly", Pod: pod("cpu", "1", "memory", "1Gi"), Pods: rt.Pods{placed("cpu", "3", "memory", "7Gi")}, Want: one(rt.OK)},
		{Name: "cpu", Pod: pod("cpu", "1001m"), Pods: rt.Pods{placed("cpu", "3")}, Want: one("Reject: Insufficient cpu (cpu: needs 1001, has 1000)")},
		{Name: "memory", Pod: pod("memory", "2Gi"), Pods: rt.Pods{placed("memory", "7Gi")}, Want: one("Reject: Insufficient memory (memory: needs 2147483648, has 1073741824)")},
		{Name: "ephemeral storage", Pod: pod("ephemeral-storage", "2"), Nodes: rt.Nodes{node().Alloc("ephemeral-storage", "3")}, Pods: rt.Pods{placed("ephemeral-storage", "2")},
			Want: one("Reject: Insufficient ephemeral-storage (ephemeral-storage: needs 2, has 1)")},
		{Name: "an extended resource", Pod: pod("example.com/gpu", "2"), Nodes: rt.Nodes{gpus()}, Pods: rt.Pods{placed("example.com/gpu", "1")},
			Want: one("Reject: Insufficient example.com/gpu (example.com/gpu: needs 2, has 1)")},
		{Name: "huge pages", Pod: pod("hugepages-2Mi", "4Mi"), Nodes: rt.Nodes{node().Alloc("hugepages-2Mi", "4Mi")}, Pods: rt.Pods{placed("hugepages-2Mi", "2Mi")},
			Want: one("Reject: Insufficient hugepages-2Mi (hugepages-2Mi: needs 4194304, has 2097152)")},
		{Name: "all that is too little", Pod: pod("cpu", "2", "memory", "2Gi"), Pods: rt.Pods{placed("cpu", "3", "memory", "7Gi")},
			Want: one("Reject: Insufficient cpu, Insufficient memory (cpu: needs 2000, has 1000; memory: needs 2147483648, has 1073741824)")},
		{Name: "what fits exactly isn't named", Pod: pod("cpu", "1", "memory", "2Gi"), Nodes: rt.Nodes{node().Alloc("pods", "2")}, Pods: rt.Pods{placed("cpu", "3", "memory", "7Gi")},
			Want: one("Reject: Insufficient memory (memory: needs 2147483648, has 1073741824)")},
		{Name: "more than the empty node has", Pod: pod("cpu", "5"), Pods: rt.Pods{placed("cpu", "1")}, Want: one("Final: Insufficient cpu (cpu: needs 5000, has 3000)")},
		{Name: "exactly what the empty node has", Pod: pod("cpu", "4"), Pods: rt.Pods{placed("cpu", "1")}, Want: one("Reject: Insufficient cpu (cpu: needs 4000, has 3000)")},
		{Name: "for good if one of them is", Pod: pod("cpu", "5", "memory", "2"), Nodes: rt.Nodes{node().Alloc("memory", "3")}, Pods: rt.Pods{placed("memory", "2")},
			Want: one("Final: Insufficient cpu, Insufficient memory (cpu: needs 5000, has 4000; memory: needs 2, has 1)")},
		{Name: "for good if the last of them is", Pod: pod("cpu", "2", "memory", "4"), Nodes: rt.Nodes{node().Alloc("memory", "3")}, Pods: rt.Pods{placed("cpu", "3")},
			Want: one("Final: Insufficient cpu, Insufficient memory (cpu: needs 2000, has 1000; memory: needs 4, has 3)")},
		{Name: "a resource that the node doesn't have", Pod: pod("example.com/gpu", "1"), Want: one("Final: Insufficient example.com/gpu (example.com/gpu: needs 1, has 0)")},
		{Name: "a resource that the node doesn't have, and devices provide", Pod: pod("example.com/gpu", "1", "cpu", "5"), Objects: rt.Objects{testkit.DeviceClass("gpus", "example.com/gpu")},
			Want: one("Final: Insufficient cpu (cpu: needs 5000, has 4000)")},
		{Name: "nothing is missing but what devices provide", Pod: pod("example.com/gpu", "1"), Objects: rt.Objects{testkit.DeviceClass("gpus", "example.com/gpu")}, Want: one(rt.OK)},
		{Name: "too little of what a device plugin and devices provide", Pod: pod("example.com/gpu", "3"), Nodes: rt.Nodes{gpus()}, Objects: rt.Objects{testkit.DeviceClass("gpus", "example.com/gpu")},
			Want: one("Final: Insufficient example.com/gpu (example.com/gpu: needs 3, has 2)")},
		{Name: "none of it is wanted", Pod: pod("example.com/gpu", "0"), Want: one(rt.OK)},

		{Name: "a pod that requests nothing fits a full node", Pod: pod(), Pods: rt.Pods{placed("cpu", "4", "memory", "8Gi")}, Want: one(rt.OK)},
		{Name: "and an overcommitted one", Pod: pod("memory", "1Gi"), Pods: rt.Pods{placed("cpu", "9")}, Want: one(rt.OK)},
		{Name: "what is missing may be negative", Pod: pod("cpu", "1"), Pods: rt.Pods{placed("cpu", "6")}, Want: one("Reject: Insufficient cpu (cpu: needs 1000, has -2000)")},
		{Name: "pods that request nothing take nothing", Pod: pod("cpu", "4"), Pods: rt.Times(9, placed()), Want: one(rt.OK)},

		{Name: "too many pods", Pod: pod(), Nodes: rt.Nodes{node().Alloc("pods", "2")}, Pods: rt.Times(2, placed()), Want: one("Reject: Too many pods (pods: needs 1, has 0)")},
		{Name: "the last pod", Pod: pod(), Nodes: rt.Nodes{node().Alloc("pods", "3")}, Pods: rt.Times(2, placed()), Want: one(rt.OK)},
		{Name: "too many pods and too little cpu", Pod: pod("cpu", "2"), Nodes: rt.Nodes{node().Alloc("pods", "1")}, Pods: rt.Pods{placed("cpu", "3")},
			Want: one("Reject: Too many pods, Insufficient cpu (pods: needs 1, has 0; cpu: needs 2000, has 1000)")},
		{Name: "no pods at all", Pod: pod(), Nodes: rt.Nodes{node().Alloc("pods", "0")}, Want: one("Reject: Too many pods (pods: needs 1, has 0)")},

		{Name: "containers add up", Pod: pod("cpu", "3").Container("cpu", "2"), Want: one("Final: Insufficient cpu (cpu: needs 5000, has 4000)")},
		{Name: "init containers run one after the other", Pod: pod("cpu", "3").InitContainer("cpu", "4").InitContainer("cpu", "4"), Want: one(rt.OK)},
		{Name: "the largest init container counts", Pod: pod("cpu", "3").InitContainer("cpu", "5"), Want: one("Final: Insufficient cpu (cpu: needs 5000, has 4000)")},
		{Name: "sidecars stay", Pod: pod("cpu", "3").Sidecar("cpu", "2"), Want: one("Final: Insufficient cpu (cpu: needs 5000, has 4000)")},
		{Name: "overhead counts", Pod: pod("cpu", "3").Overhead("cpu", "2"), Want: one("Final: Insufficient cpu (cpu: needs 5000, has 4000)")},
		{Name: "requests of the pod as a whole count instead (KEP-2837)", Pod: pod("cpu", "3").WholeReq("cpu", "5"), Want: one("Final: Insufficient cpu (cpu: needs 5000, has 4000)")},
	}}.Filter(t)
}

// Extended resources that an extender looks after needn't be on the node.
func TestFitIgnoresResources(t *testing.T) {
	byName := fit(noderesources.FitArgs{IgnoredResources: []string{"example.com/gpu", "cpu", "kubernetes.io/disk", "sub.kubernetes.io/disk", "hugepages-2Mi"}})
	byGroup := fit(noderesources.FitArgs{IgnoredResourceGroups: []string{"example.com", "kubernetes.io"}})
	final := func(name string) rt.Want {
		return one("Final: Insufficient " + name + " (" + name + ": needs 1, has 0)")
	}
	rt.Table{Scores: true, Nodes: rt.Nodes{node()}, Cases: []rt.Case{
		{Name: "ignoredResources", Plugin: byName, Pod: pod("example.com/gpu", "1"), Want: one(rt.OK)},
		{Name: "another of the domain", Plugin: byName, Pod: pod("example.com/fpga", "1"), Want: final("example.com/fpga")},
		{Name: "others still count", Plugin: byName, Pod: pod("example.com/gpu", "1", "example.com/fpga", "1"), Want: final("example.com/fpga")},
		{Name: "cpu can't be ignored", Plugin: byName, Pod: pod("cpu", "5"), Want: one("Final: Insufficient cpu (cpu: needs 5000, has 4000)")},
		{Name: "nor what has no domain", Plugin: byName, Pod: pod("hugepages-2Mi", "1"), Want: final("hugepages-2Mi")},
		{Name: "nor what is Kubernetes's", Plugin: byName, Pod: pod("kubernetes.io/disk", "1"), Want: final("kubernetes.io/disk")},
		{Name: "nor of one of its subdomains", Plugin: byName, Pod: pod("sub.kubernetes.io/disk", "1"), Want: final("sub.kubernetes.io/disk")},
		{Name: "ignoredResourceGroups", Plugin: byGroup, Pod: pod("example.com/gpu", "1", "example.com/fpga", "1"), Want: one(rt.OK)},
		{Name: "another domain", Plugin: byGroup, Pod: pod("example.org/gpu", "1"), Want: final("example.org/gpu")},
		{Name: "Kubernetes's own can't be ignored", Plugin: byGroup, Pod: pod("kubernetes.io/disk", "1"), Want: final("kubernetes.io/disk")},
	}}.Filter(t)
}

// Node n has 4 CPUs and 8Gi. Scores of a resource are cut, not rounded.
func TestLeastAllocated(t *testing.T) {
	over := func(weights ...noderesources.ResourceWeight) rt.Make {
		return fit(noderesources.FitArgs{Strategy: noderesources.LeastAllocated, Resources: weights})
	}
	cpuAndGPU := over(noderesources.ResourceWeight{Name: "cpu", Weight: 1}, noderesources.ResourceWeight{Name: "example.com/gpu", Weight: 1})
	rt.Table{Plugin: over(), Nodes: rt.Nodes{node()}, Cases: []rt.Case{
		{Name: "the free part", Pod: pod("cpu", "1", "memory", "2Gi"), Want: one("75")},
		{Name: "it is the default", Plugin: fit(noderesources.FitArgs{}), Pod: pod("cpu", "1", "memory", "2Gi"), Want: one("75")},
		{Name: "the mean over cpu and memory", Pod: pod("cpu", "1", "memory", "6Gi"), Want: one("50")}, // 75, 25
		{Name: "with the pods that are there", Pod: pod("cpu", "1", "memory", "2Gi"), Pods: rt.Pods{placed("cpu", "2", "memory", "4Gi")}, Want: one("25")},
		{Name: "the last room", Pod: pod("cpu", "2", "memory", "4Gi"), Pods: rt.Pods{placed("cpu", "2", "memory", "4Gi")}, Want: one("0")},
		{Name: "nothing requested counts as 100m and 200Mi", Pod: pod(), Want: one("97")},                                            // 97, 97
		{Name: "of pods that are there as well", Pod: pod("cpu", "0", "memory", "0"), Pods: rt.Times(10, placed()), Want: one("75")}, // 75, 75
		{Name: "zero requested is zero", Pod: pod("cpu", "0", "memory", "0"), Want: one("100")},
		{Name: "more than there is, by such defaults", Pod: pod(), Nodes: rt.Nodes{testkit.Node("n").Alloc("cpu", "150m", "memory", "400Mi")}, Pods: rt.Pods{placed()}, Want: one("0")},
		{Name: "a node without memory", Pod: pod("cpu", "1"), Nodes: rt.Nodes{testkit.Node("n").Alloc("cpu", "4")}, Want: one("75")},
		{Name: "a node with neither", Pod: pod(), Nodes: rt.Nodes{testkit.Node("n")}, Want: one("0")},
		{Name: "by weight", Plugin: over(noderesources.ResourceWeight{Name: "cpu", Weight: 1}, noderesources.ResourceWeight{Name: "memory", Weight: 3}), Pod: pod("cpu", "1", "memory", "6Gi"), Want: one("37")}, // 75, 3·25
		{Name: "one resource", Plugin: over(noderesources.ResourceWeight{Name: "cpu", Weight: 2}), Pod: pod("cpu", "1", "memory", "6Gi"), Want: one("75")},
		{Name: "an extended resource", Plugin: cpuAndGPU, Nodes: rt.Nodes{node().Alloc("example.com/gpu", "4")}, Pod: pod("cpu", "1", "example.com/gpu", "3"), Want: one("50")}, // 75, 25
		{Name: "an extended resource with the pods that are there", Plugin: cpuAndGPU, Nodes: rt.Nodes{node().Alloc("example.com/gpu", "4")}, Pod: pod("cpu", "1", "example.com/gpu", "1"), Pods: rt.Pods{placed("example.com/gpu", "2", "cpu", "0", "memory", "0")}, Want: one("50")},
		{Name: "an extended resource that the pod doesn't request doesn't count", Plugin: cpuAndGPU, Nodes: rt.Nodes{node().Alloc("example.com/gpu", "4")}, Pod: pod("cpu", "1"), Want: one("75")},
		{Name: "what doesn't count may come first", Plugin: over(noderesources.ResourceWeight{Name: "example.com/gpu", Weight: 1}, noderesources.ResourceWeight{Name: "cpu", Weight: 1}), Pod: pod("cpu", "1"), Want: one("75")},
		{Name: "ephemeral storage has no default", Plugin: over(noderesources.ResourceWeight{Name: "ephemeral-storage", Weight: 1}), Nodes: rt.Nodes{node().Alloc("ephemeral-storage", "100")}, Pod: pod(), Pods: rt.Pods{placed("ephemeral-storage", "30")}, Want: one("70")},
		{Name: "requests of the pod as a whole aren't scored", Pod: pod("cpu", "1", "memory", "2Gi").WholeReq("cpu", "2", "memory", "4Gi"), Want: one("75")},
		{Name: "a plugin that only scores scores what it would reject", Plugin: func(s *cluster.Schema) framework.Plugin {
			return framework.OnlyScores(noderesources.NewFit(noderesources.FitArgs{}))
		}, Pod: pod("cpu", "9", "memory", "2Gi"), Want: one("37")}, // 0, 75
	}}.Score(t)
}

func TestMostAllocated(t *testing.T) {
	rt.Table{Plugin: fit(noderesources.FitArgs{Strategy: noderesources.MostAllocated}), Nodes: rt.Nodes{node()}, Cases: []rt.Case{
		{Name: "the requested part", Pod: pod("cpu", "1", "memory", "2Gi"), Want: one("25")},
		{Name: "the mean over cpu and memory", Pod: pod("cpu", "1", "memory", "6Gi"), Want: one("50")},
		{Name: "with the pods that are there", Pod: pod("cpu", "1", "memory", "2Gi"), Pods: rt.Pods{placed("cpu", "2", "memory", "4Gi")}, Want: one("75")},
		{Name: "the last room", Pod: pod("cpu", "4", "memory", "8Gi"), Want: one("100")},
		{Name: "zero", Pod: pod("cpu", "0", "memory", "0"), Want: one("0")},
		{Name: "more than there is, by defaults", Pod: pod(), Nodes: rt.Nodes{testkit.Node("n").Alloc("cpu", "150m", "memory", "300Mi")}, Pods: rt.Pods{placed()}, Want: one("100")},
		{Name: "a node with neither", Pod: pod(), Nodes: rt.Nodes{testkit.Node("n")}, Want: one("0")},
	}}.Score(t)
}

// The curve rises from 0 at 20 % to 10 (100 points) at 60 %, and falls to 4 at 80 %.
func TestRequestedToCapacityRatio(t *testing.T) {
	curve := []noderesources.ShapePoint{{Utilization: 20, Score: 0}, {Utilization: 60, Score: 10}, {Utilization: 80, Score: 4}}
	ratio := func(weights ...noderesources.ResourceWeight) rt.Make {
		return fit(noderesources.FitArgs{Strategy: noderesources.RequestedToCapacityRatio, Shape: curve, Resources: weights})
	}
	cpu := noderesources.ResourceWeight{Name: "cpu", Weight: 1}
	bins := testkit.Node("n").Alloc("cpu", "100m", "memory", "100", "example.com/gpu", "100")
	rt.Table{Plugin: ratio(cpu), Nodes: rt.Nodes{bins}, Cases: []rt.Case{
		{Name: "before the first point", Pod: pod("cpu", "10m"), Want: one("0")},
		{Name: "at the first point", Pod: pod("cpu", "20m"), Want: one("0")},
		{Name: "rising", Pod: pod("cpu", "30m"), Want: one("25")},
		{Name: "at the top", Pod: pod("cpu", "60m"), Want: one("100")},
		{Name: "falling", Pod: pod("cpu", "70m"), Want: one("70")},
		{Name: "at the last point", Pod: pod("cpu", "80m"), Want: one("40")},
		{Name: "after it", Pod: pod("cpu", "100m"), Want: one("40")},
		{Name: "with the pods that are there", Pod: pod("cpu", "30m"), Pods: rt.Pods{placed("cpu", "30m")}, Want: one("100")},
		{Name: "more than there is, by defaults", Pod: pod(), Pods: rt.Pods{placed()}, Want: one("40")},
		{Name: "several resources", Plugin: ratio(), Pod: pod("cpu", "30m", "memory", "60"), Want: one("63")}, // 62.5, rounded
		{Name: "by weight", Plugin: ratio(cpu, noderesources.ResourceWeight{Name: "memory", Weight: 2}), Pod: pod("cpu", "30m", "memory", "60"), Want: one("75")},
		{Name: "a resource that scores 0 doesn't count", Plugin: ratio(), Pod: pod("cpu", "20m", "memory", "60"), Want: one("100")},
		{Name: "a resource that scores 1 does", Plugin: fit(noderesources.FitArgs{Strategy: noderesources.RequestedToCapacityRatio,
			Shape: []noderesources.ShapePoint{{Utilization: 0, Score: 0}, {Utilization: 100, Score: 10}}}), Pod: pod("cpu", "1m", "memory", "100"), Want: one("51")}, // 1, 100
		{Name: "all score 0", Plugin: ratio(), Pod: pod("cpu", "20m", "memory", "10"), Want: one("0")},
		{Name: "an extended resource that the pod doesn't request doesn't count", Plugin: ratio(cpu, noderesources.ResourceWeight{Name: "example.com/gpu", Weight: 1}), Pod: pod("cpu", "30m"), Want: one("25")},
	}}.Score(t)
}

func TestFitSignature(t *testing.T) {
	change := func(requests ...string) func(*testkit.PodBuilder) {
		return func(p *testkit.PodBuilder) { p.Req(requests...) }
	}
	base := func() *testkit.PodBuilder { return pod("cpu", "1", "memory", "1Gi") }
	rt.Signatures{Plugin: fit(noderesources.FitArgs{}), Pod: base, Cases: []rt.Change{
		rt.Differs("name", func(p *testkit.PodBuilder) { p.Name = "q" }, rt.Same),
		rt.Differs("label", func(p *testkit.PodBuilder) { p.Label("app", "web") }, rt.Same),
		rt.Differs("priority", func(p *testkit.PodBuilder) { p.Priority(5) }, rt.Same),
		rt.Differs("cpu", change("cpu", "2"), rt.Local),
		rt.Differs("cpu in another unit", change("cpu", "1000m"), rt.Same),
		rt.Differs("memory", change("memory", "2Gi"), rt.Local),
		rt.Differs("an extended resource", change("example.com/gpu", "1"), rt.Local),
		rt.Differs("none of an extended resource", change("example.com/gpu", "0"), rt.Same),
		rt.Differs("overhead", func(p *testkit.PodBuilder) { p.Overhead("cpu", "1") }, rt.Local),
		rt.Differs("the same in two containers", func(p *testkit.PodBuilder) { p.Req("cpu", "500m").Container("cpu", "500m", "memory", "0") }, rt.Same),
		rt.Differs("a container that requests nothing, and is scored", func(p *testkit.PodBuilder) { p.Container() }, rt.Local),
		rt.Differs("the same as a whole, which isn't scored", func(p *testkit.PodBuilder) { p.Req("cpu", "100m").WholeReq("cpu", "1") }, rt.Local),
	}}.Run(t)
	// What is requested of the pod as a whole isn't scored; a quantity is signed with its
	// resource.
	rt.Signatures{Plugin: fit(noderesources.FitArgs{}), Pod: func() *testkit.PodBuilder { return pod("cpu", "1", "memory", "0") }, Cases: []rt.Change{
		rt.Differs("requested as a whole, and scored the same", func(p *testkit.PodBuilder) { p.WholeReq("cpu", "2", "memory", "0") }, rt.Local),
		rt.Differs("the same number of bytes as there were milli-CPUs", change("cpu", "0", "memory", "1000"), rt.Local),
	}}.Run(t)
	// A pod that requests nothing is scored as requesting 100m and 200Mi.
	rt.Signatures{Plugin: fit(noderesources.FitArgs{}), Pod: func() *testkit.PodBuilder { return pod() }, Cases: []rt.Change{
		rt.Differs("zero requested", func(p *testkit.PodBuilder) { p.Req("cpu", "0", "memory", "0") }, rt.Local),
		rt.Differs("requested and not scored", func(p *testkit.PodBuilder) {
			p.Req("cpu", "0", "memory", "0").WholeReq("cpu", "100m", "memory", "200Mi")
		}, rt.Local),
	}}.Run(t)
}
