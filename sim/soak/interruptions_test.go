package soak

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// TestInterruptions plays worlds in which nodes are drained, with warnings that nodes are taken, beside all
// their other faults: crashes, refused calls, evictions that budgets forbid. The worlds' invariants hold:
// nothing of an interruption is left in the end, and nothing is placed where the state has the taint.
func TestInterruptions(t *testing.T) {
	warned := 0
	playWorlds(t, func(seed uint64) *scenario.Scenario { return withWarnings(GenerateDraining(seed), seed) })
	for seed := *first; seed < *first+5; seed++ {
		out, err := Play(t.Context(), withWarnings(GenerateDraining(seed), seed), sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		warned += out.Summary.Decisions["NodeInterrupted"]
	}
	if warned == 0 {
		t.Error("no node was warned of")
	}
}

// withWarnings adds warnings of 20 s to 5 minutes to a world.
func withWarnings(s *scenario.Scenario, seed uint64) *scenario.Scenario {
	for i, after := range []time.Duration{20 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute} {
		at := time.Duration(1+seed%7+uint64(i)*4) * time.Minute
		s.Spec.Faults = append(s.Spec.Faults, scenario.Fault{Kind: scenario.SpotWarning, At: []metav1.Duration{{Duration: at}, {Duration: at + 5*time.Second}}, For: metav1.Duration{Duration: after}})
	}
	return s
}

// TestPropertyACrashInAnInterruptionBreaksNothing plays such worlds with a crash a minute while nodes are taken: a new leader
// knows nothing of what was kept, and the invariants hold.
func TestPropertyACrashInAnInterruptionBreaksNothing(t *testing.T) {
	for seed := *first; seed < *first+seedsToPlay()/2; seed++ {
		s := withWarnings(GenerateDraining(seed), seed)
		s.Spec.Faults = append(s.Spec.Faults, scenario.Fault{Kind: scenario.CrashBerth, PerHour: 60, Until: metav1.Duration{Duration: 40 * time.Minute}})
		out, err := Play(t.Context(), s, sim.Options{})
		if err != nil || len(out.Problems) > 0 {
			t.Errorf("seed %d: %v %s", seed, err, list(out.Problems))
		}
	}
}
