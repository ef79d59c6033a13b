package core_test

import (
	"testing"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodebudget"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestANodeThatCannotGoYetTakesNoPartOfABudget: n1 waits for a pod to end, and the one node
// that a budget lets go is the empty n3, which begins before n2 has to be drained.
func TestANodeThatCannotGoYetTakesNoPartOfABudget(t *testing.T) {
	var last step.Ready
	d := newDriven(t, autoscaling(func(a *core.Autoscale) {
		a.UnneededTime, a.DelayAfterAdd = 10*time.Second, 0
		a.NodeBudgets = []nodebudget.Budget{testkit.Must(nodebudget.Parse("nodes=1"))}
	}), drive.Unanswered{}, defaults, drive.HookFunc(func(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) { last = *r }))
	in := []step.Input{step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Min: 1, Max: 9, Target: 4, Template: testkit.Node("g").Alloc("cpu", "4").Obj()}}}}
	for _, name := range []string{"n1", "n2", "n3", "n4"} {
		in = append(in, step.NodeSet{Node: testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi").Obj(), Group: "g"})
	}
	now := time.Unix(1000, 0)
	d.step(now, in...)
	plan := autoscaler.NewPlan(last.Plan, 0)
	plan.Removals = []*autoscaler.Removal{{Node: "n1", WaitsFor: []string{"default/job"}}, {Node: "n2", Homes: []autoscaler.Home{{Pod: "pod-web", Node: "n4"}}}, {Node: "n3"}}
	d.step(now.Add(10*time.Second), step.PlanMade{Plan: plan}) // asked for 10 s ago
	var got []string
	for _, x := range last.Taints {
		if x.Taint.Key == autoscaler.ToBeDeletedTaint {
			got = append(got, x.Node)
		}
	}
	if len(got) != 1 || got[0] != "n3" {
		t.Errorf("nodes %v begin to go, want n3", got)
	}
}
