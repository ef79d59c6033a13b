package soak

import (
	"context"
	"slices"
	"testing"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// growing makes a world one in which cluster and load only grow: no pod ends, is deleted or
// preempted, no node goes or changes, the cloud has enough of everything, and no launch fails. What else may go wrong does:
// calls and answers are lost, changes are seen late, and Berth starts anew.
func growing(s *scenario.Scenario) (restarts bool) {
	sp := &s.Spec
	sp.Policy.Flags = append(sp.Policy.Flags, "--scale-down-enabled=false")
	for i := range sp.NodeGroups {
		sp.NodeGroups[i].FailureRate, sp.NodeGroups[i].Stock = 0, nil
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
// bought is used in the end, unless the pods that it was bought for have found room earlier,
// on nodes that came before it. One that isn't used otherwise was bought twice, or for pods
// whose room others took.
func TestPropertyBoughtNodesAreUsedInGrowingWorlds(t *testing.T) {
	launched, unused, restarted := 0, 0, 0
	for seed := *first; seed < *first+seedsToPlay(); seed++ {
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
		unused += len(out.Unused)
		if freed := out.Summary.Decisions[string(step.PlaceFreed)]; len(out.Unused) > freed {
			t.Errorf("seed %d (Berth starts anew: %t): nodes %v were bought and aren't used; of %d the pods had got other nodes before", seed, restarts, out.Unused, freed)
		}
	}
	t.Logf("%d nodes were launched, and %d of them not used; in %d worlds Berth starts anew", launched, unused, restarted)
	if launched == 0 || restarted == 0 {
		t.Error("no node was launched, or Berth never started anew")
	}
}
