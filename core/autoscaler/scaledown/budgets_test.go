package scaledown_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestOnlyBerthsOwnRemovalsTakeFromBudgets has a pod of a budget on a node on its way out: it
// takes the one disruption if Berth has the node removed, and not if somebody else has.
func TestOnlyBerthsOwnRemovalsTakeFromBudgets(t *testing.T) {
	for note, want := range map[string]int{"": 1, "it is unneeded": 0} {
		s := cluster.New(cluster.NewSchema())
		s.SetGroup("g", &cluster.NodeGroup{ID: "g", Target: 3, Max: 3, Template: s.Schema.ParseNode(testkit.PartFullNode("t").Obj(), "g")})
		s.SetWorkload(cluster.WorkloadOf(testkit.ReplicaSet("r", "app", "r")))
		for _, name := range []string{"going", "n1", "full"} {
			b := testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi", "pods", "10")
			if name == "going" {
				b.Taint(autoscaler.ToBeDeletedTaint, "900", v1.TaintEffectNoSchedule)
				if note != "" {
					b.Annotations = map[string]string{autoscaler.RemovalNote: note}
				}
			}
			s.SetNode(s.Schema.ParseNode(b.Obj(), "g"))
			p := testkit.Pod("of-"+name).Owner("apps/v1", "ReplicaSet", "r").Label("app", "r").Req("cpu", "1")
			if name == "full" {
				p = testkit.Pod("own").Req("cpu", "2") // nobody would replace it
			}
			s.Place(s.Schema.ParsePod(p.Obj()), name)
			s.SetReady(p.UID, true)
		}
		s.SetObject(testkit.Budget("r", 1, "app", "r"))
		sim, req := newSimulator(t, s)
		if got := len(pass(sim, req).Removals); got != want {
			t.Errorf("with the note %q: %d nodes could be removed, want %d", note, got, want)
		}
	}
}

// TestPodsWithASuccessorFirstTakeNothingFromBudgets has a pod that asks for a successor on a node
// of its own, and a budget that allows no disruption.
func TestPodsWithASuccessorFirstTakeNothingFromBudgets(t *testing.T) {
	for _, c := range []struct {
		name     string
		surge    bool
		asks     string
		replicas int32
		want     int
	}{
		{"its Deployment makes the successor first", true, "true", 1, 1},
		{"without --surge", false, "true", 1, 0},
		{"it doesn't ask for one", true, "false", 1, 0},
		{"its Deployment has two pods, and isn't rolled", true, "true", 2, 0},
	} {
		s := cluster.New(cluster.NewSchema())
		s.SetGroup("g", &cluster.NodeGroup{ID: "g", Target: 2, Max: 2, Template: s.Schema.ParseNode(testkit.PartFullNode("t").Obj(), "g")})
		rs := testkit.ReplicaSet("web-1", "app", "web")
		rs.Spec.Replicas = &c.replicas
		s.SetWorkload(cluster.WorkloadOf(rs))
		for _, name := range []string{"n1", "full"} {
			s.SetNode(s.Schema.ParseNode(testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj(), "g"))
		}
		s.Place(s.Schema.ParsePod(testkit.Pod("own").Req("cpu", "2").Obj()), "full") // nobody would replace it
		p := testkit.Pod("web").Owner("apps/v1", "ReplicaSet", "web-1").Label("app", "web").Label("pod-template-hash", "1").Req("cpu", "1")
		p.Annotations = map[string]string{cluster.SurgeAnnotation: c.asks}
		s.Place(s.Schema.ParsePod(p.Obj()), "n1")
		s.SetReady(p.UID, true)
		s.SetObject(testkit.Budget("web", 0, "app", "web"))
		sim, req := newSimulator(t, s)
		req.ScaleDown.Rules.Surge = c.surge
		if got := len(pass(sim, req).Removals); got != c.want {
			t.Errorf("%s: %d nodes could be removed, want %d", c.name, got, c.want)
		}
	}
}

// TestPodsThatAreNotReadyTakeNothingFromBudgets makes passes over two nodes with a pod each of
// one budget, and one with room for both.
func TestPodsThatAreNotReadyTakeNothingFromBudgets(t *testing.T) {
	always := policyv1.AlwaysAllow
	for _, c := range []struct {
		name                      string
		allowed, healthy, desired int32
		policy                    *policyv1.UnhealthyPodEvictionPolicyType
		ready                     []string
		want                      string
	}{
		{name: "both are ready, and one may go", allowed: 1, healthy: 2, desired: 1, ready: []string{"a", "b"}, want: "[n1]"},
		{name: "both may go", allowed: 2, healthy: 2, ready: []string{"a", "b"}, want: "[n1 n2]"},
		{name: "one isn't ready", allowed: 1, healthy: 2, desired: 1, ready: []string{"a"}, want: "[n1 n2]"},
		{name: "none may go, but what isn't ready of an application that is well", healthy: 1, desired: 1, ready: []string{"a"}, want: "[n2]"},
		{name: "of one that isn't", healthy: 1, desired: 2, ready: []string{"a"}, want: "[]"},
		{name: "of one that isn't, and the budget says always", healthy: 1, desired: 2, policy: &always, ready: []string{"a"}, want: "[n2]"},
		{name: "none is ready, and nothing says how many are to be", want: "[]"},
	} {
		s := cluster.New(cluster.NewSchema())
		s.SetGroup("g", &cluster.NodeGroup{ID: "g", Target: 3, Max: 3, Template: s.Schema.ParseNode(testkit.PartFullNode("t").Obj(), "g")})
		node := func(name, cpu string) {
			s.SetNode(s.Schema.ParseNode(testkit.Node(name).Alloc("cpu", cpu, "memory", "8Gi", "pods", "10").Obj(), "g"))
		}
		pod := func(name, node string) {
			s.Place(s.Schema.ParsePod(testkit.Pod(name).Owner("apps/v1", "ReplicaSet", "r").Label("app", "r").Req("cpu", "1").Obj()), node)
		}
		s.SetWorkload(cluster.WorkloadOf(testkit.ReplicaSet("r", "app", "r")))
		node("n1", "4")
		node("n2", "4")
		node("full", "4")
		pod("a", "n1")
		pod("b", "n2")
		s.Place(s.Schema.ParsePod(testkit.Pod("own").Req("cpu", "2").Obj()), "full") // nobody would replace it
		for _, name := range c.ready {
			s.SetReady(testkit.Pod(name).UID, true)
		}
		b := testkit.Budget("r", c.allowed, "app", "r")
		b.Status.CurrentHealthy, b.Status.DesiredHealthy, b.Spec.UnhealthyPodEvictionPolicy = c.healthy, c.desired, c.policy
		s.SetObject(b)
		sim, req := newSimulator(t, s)
		names := func() string {
			out := []string{}
			for _, r := range pass(sim, req).Removals {
				out = append(out, r.Node)
			}
			return fmt.Sprint(out)
		}
		if got := names(); got != c.want {
			t.Errorf("%s: %s could be removed, want %s", c.name, got, c.want)
		}
		// From the next pass on, all pods are ready.
		s.SetReady(testkit.Pod("a").UID, true)
		s.SetReady(testkit.Pod("b").UID, true)
		req.Now = req.Now.Add(time.Minute)
		want := map[int32]string{0: "[]", 1: "[n1]", 2: "[n1 n2]"}[c.allowed]
		if got := names(); got != want {
			t.Errorf("%s, and all are ready then: %s could be removed, want %s", c.name, got, want)
		}
	}
}
