package soak

import (
	"context"
	"slices"
	"testing"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// growing makes a world one in which cluster and load only grow: no pod ends, is deleted or
// preempted, no node goes or changes, and no launch fails. What else may go wrong does:
// calls and answers are lost, changes are seen late, and Berth starts anew.
func growing(s *scenario.Scenario) (restarts bool) {
	sp := &s.Spec
	sp.Policy.Flags = append(sp.Policy.Flags, "--scale-down-enabled=false")
	for i := range sp.NodeGroups {
		sp.NodeGroups[i].FailureRate = 0
	}
	for i := range sp.Workload {
		w := &sp.Workload[i]
		w.RunFor, w.DeleteAfter.Duration, w.Template.Spec.Priority = nil, 0, nil
	}
	sp.Faults = slices.DeleteFunc(sp.Faults, func(f scenario.Fault) bool {
		switch f.Kind {
		case scenario.CrashBerth:
			restarts = true
			return false
		case scenario.APIError, scenario.APIConflict, scenario.APITimeout, scenario.AnswerLost,
			scenario.CloudError, scenario.CloudLost, scenario.WatchStall:
			return false
		}
		return true
	})
	return restarts
}

// TestPropertyBoughtNodesAreUsedInGrowingWorlds plays growing worlds: each node that was
// bought is used in the end. One that isn't was bought twice, or for pods that others took
// the room of.
func TestPropertyBoughtNodesAreUsedInGrowingWorlds(t *testing.T) {
	launched, restarted := 0, 0
	for seed := *first; seed < *first+uint64(*seeds); seed++ {
		s := Generate(seed)
		restarts := growing(s)
		out, err := Play(context.Background(), s, sim.Options{})
		if err != nil || len(out.Problems) > 0 {
			t.Errorf("seed %d: %v %s", seed, err, list(out.Problems))
			continue
		}
		launched += out.Summary.Nodes.Launched
		if restarts {
			restarted++
		}
		if len(out.Unused) > 0 {
			t.Errorf("seed %d (Berth starts anew: %t): nodes %v were bought and aren't used", seed, restarts, out.Unused)
		}
	}
	t.Logf("%d nodes were launched; in %d worlds Berth starts anew", launched, restarted)
	if launched == 0 || restarted == 0 {
		t.Error("no node was launched, or Berth never started anew")
	}
}
