package candidates_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/candidates"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestAPlanThatChangesNothingAllocatesNothing commits the same plan again, of 100 candidates
// whose time has not come: as most plans are.
func TestAPlanThatChangesNothingAllocatesNothing(t *testing.T) {
	turn := &lifecycle.Turn{Now: time.Unix(1000, 0), State: cluster.New(cluster.NewSchema()), Ready: &step.Ready{}}
	m := candidates.New(candidates.Config{UnneededTime: time.Hour, MaxBulk: 100})
	plan := &autoscaler.Plan{Now: turn.Now}
	for i := range 100 {
		n := testkit.Node(fmt.Sprint("n", i)).Obj()
		turn.State.SetNode(turn.State.Schema.ParseNode(n, "g"))
		plan.Removals = append(plan.Removals, &autoscaler.Removal{Node: n.Name})
	}
	commit := func() {
		m.CommitPlan(turn, plan)
		m.Advance(turn)
	}
	commit()
	for _, x := range turn.Ready.Taints {
		m.TaintDone(turn, step.TaintDone{Node: x.Node, Key: x.Taint.Key, Remove: x.Remove})
	}
	decisions, taints := len(turn.Ready.Decisions), len(turn.Ready.Taints)
	if n := testing.AllocsPerRun(10, commit); n != 0 {
		t.Errorf("%.0f allocations a plan, want none", n)
	}
	if len(turn.Ready.Decisions) != decisions || len(turn.Ready.Taints) != taints || decisions != 100 || taints != 100 {
		t.Errorf("%d decisions and %d taints, then %d and %d; want 100 of each, once", decisions, taints, len(turn.Ready.Decisions), len(turn.Ready.Taints))
	}
}
