package checker_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/sim/checker"
)

// This file specifies what the checker finds: a case plants one violation, or none.

// objects returns what builders have built.
func objects(nodes []*testkit.NodeBuilder, pods []*testkit.PodBuilder) (ns []*v1.Node, ps []*v1.Pod) {
	for _, n := range nodes {
		ns = append(ns, n.Obj())
	}
	for _, p := range pods {
		ps = append(ps, p.Obj())
	}
	return ns, ps
}

// expect wants one violation of a rule, or none for "".
func expect(t *testing.T, got []checker.Violation, rule string) {
	t.Helper()
	switch {
	case rule == "" && len(got) > 0:
		t.Errorf("got %v, want nothing", got)
	case rule != "" && (len(got) != 1 || got[0].Rule != rule):
		t.Errorf("got %v, want one violation of %s", got, rule)
	}
}

// TestCheckFindsWhatIsPlanted has one violation in each case, or none.
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
			nodes, pods := objects(c.nodes, c.pods)
			expect(t, checker.Check(nodes, pods, nil), c.want)
		})
	}
}

// TestCheckStandingFindsWhatIsPlanted has nodes a and b, in zones of the same names.
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
			nodes, pods := objects([]*testkit.NodeBuilder{testkit.Node("a").Zone("a"), testkit.Node("b").Zone("b")}, c.pods)
			expect(t, checker.CheckStanding(nodes, pods), c.want)
		})
	}
}

// TestCheckPodsFindsWhatWasPlacedWrongly has a pod "new" that was placed now, and others
// that were there before.
func TestCheckPodsFindsWhatWasPlacedWrongly(t *testing.T) {
	node := func() *testkit.NodeBuilder { return testkit.Node("n").Alloc("cpu", "2") }
	pod := func(name string) *testkit.PodBuilder { return testkit.Pod(name).Req("cpu", "1").On("n") }
	apart := func(name string) *testkit.PodBuilder {
		return pod(name).Label("app", "web").Apart(v1.LabelHostname, "app", "web")
	}
	for _, c := range []struct {
		name string
		node *testkit.NodeBuilder
		pods []*testkit.PodBuilder
		want string // rule, "" for none
	}{
		{"room for both", node(), []*testkit.PodBuilder{pod("old"), pod("new")}, ""},
		{"no room for the new one", node(), []*testkit.PodBuilder{pod("old"), pod("older"), pod("new")}, "capacity"},
		{"a node that has shrunk", node(), []*testkit.PodBuilder{pod("old"), pod("older"), pod("oldest")}, ""},
		{"cordoned", node().Cordon(), []*testkit.PodBuilder{pod("new")}, "cordon"},
		{"cordoned, and tolerated", node().Cordon(), []*testkit.PodBuilder{pod("new").Tolerate(v1.TaintNodeUnschedulable)}, ""},
		{"cordoned since", node().Cordon(), []*testkit.PodBuilder{pod("old")}, ""},
		{"NoExecute", node().Taint("gone", "", v1.TaintEffectNoExecute), []*testkit.PodBuilder{pod("new")}, "taint"},
		{"apart from an old one", node(), []*testkit.PodBuilder{apart("new"), pod("old").Label("app", "web")}, "anti-affinity"},
		{"an old one is apart", node(), []*testkit.PodBuilder{apart("old"), pod("new").Label("app", "web")}, "anti-affinity"},
		{"two old ones", node(), []*testkit.PodBuilder{apart("old"), pod("older").Label("app", "web")}, ""},
		{"the port of an old one", node(), []*testkit.PodBuilder{pod("new").HostPort(80), pod("old").HostPort(80)}, "ports"},
	} {
		t.Run(c.name, func(t *testing.T) {
			nodes, pods := objects([]*testkit.NodeBuilder{c.node}, c.pods)
			expect(t, checker.CheckPods(nodes, pods, func(p *v1.Pod) bool { return p.Name == "new" }), c.want)
		})
	}
}

func TestFitsLooksAtThePodAlone(t *testing.T) {
	full, free := testkit.Node("full").Alloc("cpu", "1").Obj(), testkit.Node("free").Alloc("cpu", "1").Obj()
	nodes := []*v1.Node{full, free}
	pods := []*v1.Pod{testkit.Pod("a").Req("cpu", "1").On("full").Obj()}
	pod := testkit.Pod("p").Req("cpu", "1").Obj()
	if checker.Fits(pod, full, nodes, pods) || !checker.Fits(pod, free, nodes, pods) {
		t.Errorf("got %v and %v, want that it fits on the free node only", checker.Fits(pod, full, nodes, pods), checker.Fits(pod, free, nodes, pods))
	}
	if pod.Spec.NodeName != "" || len(pods) != 1 {
		t.Error("asking has placed the pod")
	}
}

// TestFitsKeepsToHardSpread: with two pods in zone a and one in b, a third in a would be two
// more than in b.
func TestFitsKeepsToHardSpread(t *testing.T) {
	pod := func(name, node string, when v1.UnsatisfiableConstraintAction) *v1.Pod {
		p := testkit.Pod(name).Label("app", "w").On(node).Obj()
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: when,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}}}}
		return p
	}
	nodes := []*v1.Node{testkit.Node("a").Zone("a").Obj(), testkit.Node("b").Zone("b").Obj()}
	standing := []*v1.Pod{pod("p0", "a", v1.DoNotSchedule), pod("p1", "a", v1.DoNotSchedule), pod("p2", "b", v1.DoNotSchedule)}
	for _, c := range []struct {
		node *v1.Node
		when v1.UnsatisfiableConstraintAction
		want bool
	}{{nodes[0], v1.DoNotSchedule, false}, {nodes[0], v1.ScheduleAnyway, true}, {nodes[1], v1.DoNotSchedule, true}} {
		if got := checker.Fits(pod("new", "", c.when), c.node, nodes, standing); got != c.want {
			t.Errorf("on node %s, %s: fits is %v, want %v", c.node.Name, c.when, got, c.want)
		}
	}
}
