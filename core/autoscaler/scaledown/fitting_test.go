package scaledown_test

import (
	"testing"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPodsKeepTheNodesThatTheyFitOn has two pods that wait, with their place on n0, which takes
// one of them. The plan finds that the other fits on n1, so n1 stays, too; n2 goes. A plan that is
// committed late can leave two pods with such a place.
func TestPodsKeepTheNodesThatTheyFitOn(t *testing.T) {
	s := cluster.New(cluster.NewSchema())
	s.SetGroup("g", &cluster.NodeGroup{ID: "g", Target: 3, Max: 3, Template: s.Schema.ParseNode(aNode("t").Obj(), "g")})
	for _, name := range []string{"n0", "n1", "n2"} {
		s.SetNode(s.Schema.ParseNode(aNode(name).Obj(), "g"))
	}
	sim, req := newSimulator(t, s)
	plan := autoscaler.NewPlan(req, 0)
	for i, name := range []string{"first", "second"} {
		pod := s.Schema.ParsePod(testkit.Pod(name).Req("cpu", "4").Obj())
		s.Nominate(pod, "n0")
		plan.Fitting = append(plan.Fitting, autoscaler.Fitting{Pod: pod, Node: []string{"n0", "n1"}[i]})
	}
	sim.Plan(req, &autoscaler.Questions{}, plan)
	if len(plan.Removals) != 1 || plan.Removals[0].Node != "n2" {
		for _, r := range plan.Removals {
			t.Logf("the plan removes %s", r.Node)
		}
		t.Error("want n2 alone")
	}
	for _, f := range plan.Fitting {
		s.Nominate(f.Pod, "")
	}
	if got := len(pass(sim, req).Removals); got != 3 {
		t.Errorf("when the pods are gone the plan removes %d nodes, want 3", got)
	}
}
