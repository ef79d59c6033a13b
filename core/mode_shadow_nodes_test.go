package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// newShadowOfNodes returns a shadow that compares nodes, too.
func newShadowOfNodes(t rapid.TB, change func(*core.Autoscale)) *shadow {
	return newShadow(t, func(c *core.Config) {
		a := core.DefaultAutoscale()
		change(&a)
		c.Autoscale = &a
	})
}

// groupOf returns what the provider says about a group of nodes with 4 CPUs for 0.50 an hour.
func groupOf(id string, target int, instances ...string) step.GroupsSet {
	g := nodegroup.Group{ID: id, Max: 10, Target: target, Price: 0.5, Instances: []nodegroup.Instance{},
		Template: testkit.Node(id).Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj()}
	for _, name := range instances {
		g.Instances = append(g.Instances, nodegroup.Instance{ID: name, Node: name})
	}
	return step.GroupsSet{Groups: []nodegroup.Group{g}}
}

func newNode(name string) *testkit.NodeBuilder {
	n := testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Label(v1.LabelHostname, name)
	n.Spec.ProviderID = name
	return n
}

// nodeVerdicts returns what the last call has compared of nodes, a line each.
func (s *shadow) nodeVerdicts() string {
	var out []string
	for i := range s.nodes {
		c := &s.nodes[i]
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %d %s", c.Verdict, c.Nodes, c.Node)))
	}
	return strings.Join(out, ", ")
}

// TestAShadowComparesNodes with another autoscaler that buys and removes what Berth would, later,
// and a node that Berth needs. That the shadow asks for no work is checked in each Step.
func TestAShadowComparesNodes(t *testing.T) {
	s := newShadowOfNodes(t, func(*core.Autoscale) {})
	expect := func(when, want string) {
		t.Helper()
		if got := s.nodeVerdicts(); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	set := func(wait time.Duration, in ...step.Input) { t.Helper(); s.after(wait, in...) }
	busy := func(name string) *testkit.PodBuilder {
		return testkit.Pod(name).Req("cpu", "3").Owner("apps/v1", "ReplicaSet", "web")
	}
	set(0, step.NodeSet{Node: newNode("n1").Obj(), Group: "g"}, groupOf("g", 1, "n1"), step.PodSet{Pod: busy("a").On("n1").Obj()})
	set(time.Minute, step.PodSet{Pod: busy("b").Obj()})
	expect("a pod waits, and many plans are made", "")
	if r := s.Core().ShadowReport().Nodes; r.Buying != 1 || s.Core().State().Group("g").Target != 1 {
		t.Errorf("%+v, and the target is %d; want one node to be wished for, and none ordered", r, s.Core().State().Group("g").Target)
	}
	set(time.Minute, groupOf("g", 2, "n1", "n2"))
	expect("the group grows", "boughtByBoth 1")
	set(time.Minute, step.NodeSet{Node: newNode("n2").Obj(), Group: "g"}, step.PodSet{Pod: busy("b").On("n2").Obj()})
	expect("the node comes, and the pod is bound", "")
	if d := s.Core().ShadowReport().Nodes.BoughtAhead; d != time.Minute-500*time.Millisecond {
		t.Errorf("Berth was %s sooner, want a minute, but for the half second between two plans", d)
	}

	set(30*time.Minute, step.PodGone{UID: "pod-b"})
	expect("n2 is empty for half an hour", "removedOnlyByBerth 1 n2")
	set(time.Minute, step.NodeSet{Node: newNode("n2").Taint(autoscaler.ToBeDeletedTaint, "", v1.TaintEffectNoSchedule).Obj(), Group: "g"})
	expect("n2 is marked after all", "removedByBoth 1 n2")
	set(time.Minute, step.NodeGone{Name: "n2"}, groupOf("g", 1, "n1"))
	expect("n2 is gone", "")
	set(time.Minute, step.NodeGone{Name: "n1"}, groupOf("g", 0))
	expect("n1 goes with its pod", "removedOnlyByOther 1 n1")
	r := s.Core().ShadowReport().Nodes
	if want := string(autoscaler.KeptUtilized); len(r.Differences) != 1 || !strings.Contains(r.Differences[0].Reason, want) {
		t.Errorf("the differences: %+v, want one that says %s", r.Differences, want)
	}
	// n1 was there for 35 minutes and n2 for 32; Berth's version has n2 a minute sooner and, 10
	// minutes and a plan after it became empty, no more for some 20.
	if c, b := r.Cluster, r.Berth; c.Hours < 1.06 || c.Hours > 1.14 || c.Cost != c.Hours/2 || b.Hours > c.Hours-19.0/60 || b.Hours < c.Hours-21.0/60 {
		t.Errorf("the cluster's hours are %+v, Berth's %+v", c, b)
	}
}

// TestAShadowWantsNoNodesForPreemptors: whom others would leave a node for, Berth buys none.
func TestAShadowWantsNoNodesForPreemptors(t *testing.T) {
	s := newShadowOfNodes(t, func(*core.Autoscale) {})
	s.after(0, step.NodeSet{Node: newNode("n1").Obj(), Group: "g"}, groupOf("g", 1, "n1"), step.PodSet{Pod: testkit.Pod("low").Req("cpu", "3").On("n1").Obj()})
	s.after(time.Minute, step.PodSet{Pod: testkit.Pod("high").Req("cpu", "3").Priority(10).Obj()})
	if r := s.Core().ShadowReport().Nodes; r.Buying != 0 {
		t.Errorf("Berth would buy %d nodes, want none", r.Buying)
	}
}

// TestPropertyAShadowOfNodesAsksForNoWork whatever the cluster, the provider and the other
// autoscaler do: nodes that come late, fail, are marked, drained or gone.
func TestPropertyAShadowOfNodesAsksForNoWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShadowOfNodes(t, func(a *core.Autoscale) {
			a.Limits.EnforceMinSize, a.Consolidation = true, true
			a.UnneededTime, a.DelayAfterAdd = time.Minute, time.Minute
			a.MaxProvisionTime, a.ForceDeleteUnregistered = 3*time.Minute, true
		})
		names := testkit.Names("n", 6)
		pick := func() string { return names[testkit.Uniform(t, len(names), "node")] }
		bound := map[types.UID]string{} // a pod keeps its node as long as it exists
		s.after(0, groupOf("g", 2, "n0"))
		for range 25 {
			var in []step.Input
			switch testkit.Uniform(t, 6, "what") {
			case 0:
				n := testkit.RandomNode(t, pick())
				n.Spec.ProviderID = n.Name
				switch testkit.Uniform(t, 4, "taint") {
				case 0:
					n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: autoscaler.ToBeDeletedTaint, Effect: v1.TaintEffectNoSchedule})
				case 1:
					n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: autoscaler.DeletionCandidateTaint, Value: "900", Effect: v1.TaintEffectPreferNoSchedule})
				}
				in = append(in, step.NodeSet{Node: n, Group: []string{"", "g", "g"}[testkit.Uniform(t, 3, "group")]})
			case 1:
				in = append(in, step.NodeGone{Name: pick()})
			case 2, 3:
				for i := range 1 + testkit.Uniform(t, 3, "pods") {
					p := testkit.RandomPod(t, fmt.Sprint("p", testkit.Uniform(t, 8, "pod"), i))
					if p.Spec.NodeName = bound[p.UID]; p.Spec.NodeName == "" && testkit.Uniform(t, 2, "bound") == 0 {
						p.Spec.NodeName = pick()
						bound[p.UID] = p.Spec.NodeName
					}
					in = append(in, step.PodSet{Pod: p})
				}
			case 4:
				uid := testkit.Pod(fmt.Sprint("p", testkit.Uniform(t, 8, "pod"), testkit.Uniform(t, 3, "which"))).UID
				delete(bound, uid)
				in = append(in, step.PodGone{UID: uid})
			case 5:
				g := groupOf("g", testkit.Uniform(t, 6, "target"), names[:testkit.Uniform(t, len(names), "instances")]...)
				x := &g.Groups[0]
				x.Min = testkit.Uniform(t, 3, "min")
				if i := testkit.Uniform(t, 4, "failed"); i < len(x.Instances) {
					x.Instances[i].Failed = "it is broken"
				}
				in = append(in, g)
			}
			s.after([]time.Duration{time.Second, time.Minute, 4 * time.Minute}[testkit.Uniform(t, 3, "wait")], in...)
		}
	})
}
