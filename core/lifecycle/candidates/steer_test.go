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

// TestTheStateGetsSoftTaintsInBulks commits plans for 250 nodes. The state gets 100 soft taints
// at once, and 100 more each 200 ms; a node that is needed again before its turn has come never
// gets one.
func TestTheStateGetsSoftTaintsInBulks(t *testing.T) {
	start := time.Unix(1000, 0)
	turn := &lifecycle.Turn{State: cluster.New(cluster.NewSchema()), Ready: &step.Ready{}}
	m := candidates.New(candidates.Config{UnneededTime: time.Hour, MaxBulk: 10})
	for _, name := range testkit.Names("n", 250) {
		turn.State.SetNode(turn.State.Schema.ParseNode(testkit.Node(name).Obj(), "g"))
	}
	for _, c := range []struct {
		at      time.Duration
		plan    int // removes so many nodes, the first ones; -1 for no plan
		tainted int
		changed int // nodes, since the row before
		wake    time.Duration
	}{
		{0, 250, 100, 100, 200 * time.Millisecond},
		{100 * time.Millisecond, -1, 100, 0, 200 * time.Millisecond},
		{200 * time.Millisecond, -1, 200, 100, 400 * time.Millisecond},
		{300 * time.Millisecond, 205, 200, 0, 400 * time.Millisecond}, // 45 of those that wait are needed
		{400 * time.Millisecond, -1, 205, 5, 0},
		{500 * time.Millisecond, 0, 105, 100, 700 * time.Millisecond},
		{800 * time.Millisecond, -1, 5, 100, time.Second},
		{1100 * time.Millisecond, -1, 0, 5, 0},
	} {
		turn.Now = start.Add(c.at)
		before := turn.State.Head()
		if c.plan >= 0 {
			plan := &autoscaler.Plan{Now: turn.Now}
			for _, name := range testkit.Names("n", c.plan) {
				plan.Removals = append(plan.Removals, &autoscaler.Removal{Node: name})
			}
			m.CommitPlan(turn, plan)
		}
		m.Advance(turn)
		tainted := 0
		turn.State.Nodes(func(n *cluster.Node) {
			if n.HasTaint(autoscaler.DeletionCandidateTaint) {
				tainted++
			}
		})
		got := fmt.Sprintf("%d nodes have a soft taint, %d were changed, the next bulk comes at %s", tainted, turn.State.Head()-before, wakeAfter(start, m.NextWake()))
		want := fmt.Sprintf("%d nodes have a soft taint, %d were changed, the next bulk comes at %s", c.tainted, c.changed, c.wake)
		if got != want {
			t.Errorf("at %s: %s; want: %s", c.at, got, want)
		}
		for _, broken := range append(m.Invariants(), m.InvariantsIn(turn.State)...) {
			t.Errorf("at %s: broken invariant: %s", c.at, broken)
		}
	}
}

// wakeAfter returns how long after a time the machine wants to be woken, 0 for not at all.
func wakeAfter(start, wake time.Time) time.Duration {
	if wake.IsZero() {
		return 0
	}
	return wake.Sub(start)
}
