package soak

import (
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// movingGroups reads a world in which nodes are drained and consolidated, and half of the services are pod groups that
// are disrupted as a whole. In every second one nothing goes wrong.
func movingGroups(t *testing.T, seed uint64) *scenario.Run {
	t.Helper()
	s := GenerateDraining(seed)
	for i := range s.Spec.Workload {
		if w := &s.Spec.Workload[i]; i%2 == 0 && w.Kind == "ReplicaSet" {
			w.PodGroup = &scenario.PodGroup{MinCount: int(seed%2) * w.Count, DisruptionMode: "all"}
			w.MaxUnavailable = nil // a budget that never lets all members go keeps their nodes
		}
	}
	s.Spec.Policy.Flags = append(s.Spec.Policy.Flags, "--consolidation", "--consolidation-threshold=0")
	if seed%2 == 0 {
		s.Spec.Faults = nil
	}
	run, err := scenario.Parse(s.Metadata.Name+".yaml", Text(s))
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return run
}

// evictionsByGroup returns a hook that counts the evictions of each ReplicaSet's pods.
func evictionsByGroup() (map[string]int, drive.Hook) {
	out := map[string]int{}
	return out, drive.HookFunc(func(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
		for i := range r.Decisions {
			if d := &r.Decisions[i]; d.Kind == step.PodEvicted {
				name := d.Pod[strings.LastIndex(d.Pod, "/")+1:]
				out[name[:strings.Index(name+"-", "-")]]++
			}
		}
	})
}

// TestPodGroupsMove plays worlds in which the nodes of pod groups are drained and consolidated: every invariant holds, and
// where nothing goes wrong and no removal was given up, the members of a group were evicted all as often.
func TestPodGroupsMove(t *testing.T) {
	consolidated, together := 0, 0
	for seed := *first; seed < *first+60; seed++ {
		run := movingGroups(t, seed)
		evicted, hook := evictionsByGroup()
		out, err := playRun(t.Context(), run, sim.Options{Hooks: []drive.Hook{hook}})
		if err != nil || len(out.Problems) > 0 {
			t.Errorf("seed %d: %v %s", seed, err, list(out.Problems))
			continue
		}
		counts := out.Summary.Decisions
		consolidated += counts[string(step.Consolidates)]
		if len(run.Spec.Faults) > 0 || counts[string(step.NodeKept)]+counts[string(step.NodeRecalled)] > 0 {
			continue
		}
		for i := range run.Spec.Workload {
			w := &run.Spec.Workload[i]
			if w.PodGroup == nil || w.DeleteAfter.Duration > 0 || w.Arrive.Over.Duration > 0 {
				continue
			}
			together += evicted[w.Name]
			if evicted[w.Name]%w.Count != 0 {
				t.Errorf("seed %d: of the %d members of pod group %s %d were evicted", seed, w.Count, w.Name, evicted[w.Name])
			}
		}
	}
	t.Logf("%d consolidations, %d members of groups were moved", consolidated, together)
	if consolidated == 0 || together == 0 {
		t.Errorf("%d consolidations and %d members of groups that were moved, want some of each", consolidated, together)
	}
}
