package soak

import (
	"testing"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/sim"

	"time"
)

// impatient is a stopwatch for which everything takes too long.
type impatient struct{}

func (impatient) Start(autoscaler.Span)     {}
func (impatient) Over(autoscaler.Span) bool { return true }

// TestPropertyPlansThatAreCutShortBreakNothing plays random worlds in which each plan ends
// with the first nodes that it proposes: the plans together buy what pods need, no invariant
// of the core or the world is broken, and none is left with pods that a node group could take.
func TestPropertyPlansThatAreCutShortBreakNothing(t *testing.T) {
	cut := 0
	hook := drive.HookFunc(func(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
		for i := range r.Decisions {
			if r.Decisions[i].Kind == step.PlanCut {
				cut++
			}
		}
	})
	for seed := uint64(1); seed <= 15; seed++ {
		out, err := Play(t.Context(), Generate(seed), sim.Options{Check: true, Stopwatch: impatient{}, Hooks: []drive.Hook{hook}})
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range out.Problems {
			t.Errorf("world %d: %s", seed, problem)
		}
	}
	if cut < 5 {
		t.Errorf("only %d plans were cut short", cut)
	}
}
