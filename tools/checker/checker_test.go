package checker_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/internal/testkit"
	"github.com/berthproject/berth/tools/checker"
)

// Each case plants one violation, or none.
func TestCheckFindsWhatIsPlanted(t *testing.T) {
	node := func() *testkit.NodeBuilder { return testkit.Node("n").Alloc("cpu", "2", "memory", "4Gi") }
	gpu := node().Alloc("example.com/gpu", "1")
	for _, c := range []struct {
		name  string
		nodes []*testkit.NodeBuilder
		pods  []*testkit.PodBuilder
		want  string // rule, "" for none
	}{
		{"all well", []*testkit.NodeBuilder{node()}, []*testkit.PodBuilder{testkit.Pod("a").Req("cpu", "1").On("n"), testkit.Pod("b").Req("cpu", "1").On("n")}, ""},
		{"cpu", []*testkit.NodeBuilder{node()}, []*testkit.PodBuilder{testkit.Pod("a").Req("cpu", "1").On("n"), testkit.Pod("b").Req("cpu", "1001m").On("n")}, "capacity"},
		{"extended resource", []*testkit.NodeBuilder{gpu}, []*testkit.PodBuilder{testkit.Pod("a").Req("example.com/gpu", "1").On("n"), testkit.Pod("b").Req("example.com/gpu", "1").On("n")}, "capacity"},
		{"resource the node lacks", []*testkit.NodeBuilder{node()}, []*testkit.PodBuilder{testkit.Pod("a").Req("example.com/gpu", "1").On("n")}, "capacity"},
		{"pods", []*testkit.NodeBuilder{node().Alloc("pods", "1")}, []*testkit.PodBuilder{testkit.Pod("a").On("n"), testkit.Pod("b").On("n")}, "pods"},
		{"ports", []*testkit.NodeBuilder{node()}, []*testkit.PodBuilder{testkit.Pod("a").HostPort(80).On("n"), testkit.Pod("b").HostPort(80).On("n")}, "ports"},
		{"taint", []*testkit.NodeBuilder{node().Taint("gpu", "", v1.TaintEffectNoSchedule)}, []*testkit.PodBuilder{testkit.Pod("a").On("n")}, "taint"},
		{"tolerated", []*testkit.NodeBuilder{node().Taint("gpu", "", v1.TaintEffectNoSchedule)}, []*testkit.PodBuilder{testkit.Pod("a").Tolerate("gpu").On("n")}, ""},
		{"selector", []*testkit.NodeBuilder{node()}, []*testkit.PodBuilder{testkit.Pod("a").Select("disk", "ssd").On("n")}, "affinity"},
		{"affinity", []*testkit.NodeBuilder{node().Zone("a")}, []*testkit.PodBuilder{testkit.Pod("a").RequireIn(v1.LabelTopologyZone, "b").On("n")}, "affinity"},
		{"anti-affinity", []*testkit.NodeBuilder{node()}, []*testkit.PodBuilder{testkit.Pod("a").Label("app", "web").Apart(v1.LabelHostname, "app", "web").On("n"), testkit.Pod("b").Label("app", "web").On("n")}, "anti-affinity"},
		{"unknown node", nil, []*testkit.PodBuilder{testkit.Pod("a").On("gone")}, "node"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var nodes []*v1.Node
			for _, n := range c.nodes {
				nodes = append(nodes, n.Obj())
			}
			var pods []*v1.Pod
			for _, p := range c.pods {
				pods = append(pods, p.Obj())
			}
			got := checker.Check(nodes, pods, nil)
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("got %v, want nothing", got)
			case c.want != "" && (len(got) != 1 || got[0].Rule != c.want):
				t.Errorf("got %v, want one violation of %s", got, c.want)
			}
		})
	}
}

// TestCheckStandingFindsWhatIsPlanted has nodes a and b in zones of those names.
func TestCheckStandingFindsWhatIsPlanted(t *testing.T) {
	web := func(name, node string) *testkit.PodBuilder { return testkit.Pod(name).Label("app", "web").On(node) }
	together := func(name, node string) *testkit.PodBuilder {
		return testkit.Pod(name).Together(v1.LabelTopologyZone, "app", "web").On(node)
	}
	spread := func(name, node string) *testkit.PodBuilder {
		return web(name, node).SpreadHard(v1.LabelTopologyZone, 1, "app", "web")
	}
	for _, c := range []struct {
		name string
		pods []*testkit.PodBuilder
		want string // rule, "" for none
	}{
		{"together", []*testkit.PodBuilder{web("w", "a"), together("p", "a")}, ""},
		{"not together", []*testkit.PodBuilder{web("w", "a"), together("p", "b")}, "pod affinity"},
		{"with nobody", []*testkit.PodBuilder{together("p", "b")}, "pod affinity"},
		{"the first of its kind", []*testkit.PodBuilder{together("p", "b").Label("app", "web")}, ""},
		{"spread", []*testkit.PodBuilder{spread("p", "a"), spread("q", "b"), spread("r", "a")}, ""},
		{"not spread", []*testkit.PodBuilder{web("p", "a"), spread("q", "a")}, "spread"},
		{"spread where it may be", []*testkit.PodBuilder{web("p", "a"), spread("q", "a").RequireIn(v1.LabelTopologyZone, "a")}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			nodes := []*v1.Node{testkit.Node("a").Zone("a").Obj(), testkit.Node("b").Zone("b").Obj()}
			var pods []*v1.Pod
			for _, p := range c.pods {
				pods = append(pods, p.Obj())
			}
			got := checker.CheckStanding(nodes, pods)
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("got %v, want nothing", got)
			case c.want != "" && (len(got) != 1 || got[0].Rule != c.want):
				t.Errorf("got %v, want one violation of %s", got, c.want)
			}
		})
	}
}
