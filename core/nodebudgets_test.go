package core_test

import (
	"testing"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodebudget"
	"github.com/berthproject/berth/internal/testkit"
)

// TestANodeThatCannotGoYetTakesNoPartOfABudget: n1 waits for a pod to end, and the one node
// that a budget lets go is the empty n3, which begins before n2 has to be drained.
func TestANodeThatCannotGoYetTakesNoPartOfABudget(t *testing.T) {
	p := newHandPlanned(t, func(a *core.Autoscale) {
		a.UnneededTime, a.DelayAfterAdd = 10*time.Second, 0
		a.NodeBudgets = []nodebudget.Budget{testkit.Must(nodebudget.Parse("nodes=1"))}
	})
	ready := p.plan(func(plan *autoscaler.Plan) { // asked for 10 s ago
		plan.Removals = []*autoscaler.Removal{{Node: "n1", WaitsFor: []string{"default/job"}}, {Node: "n2", Homes: []autoscaler.Home{{Pod: "pod-web", Node: "n4"}}}, {Node: "n3"}}
	})
	var got []string
	for _, x := range ready.Taints {
		if x.Taint.Key == autoscaler.ToBeDeletedTaint {
			got = append(got, x.Node)
		}
	}
	if len(got) != 1 || got[0] != "n3" {
		t.Errorf("nodes %v begin to go, want n3", got)
	}
}
