package soak

import (
	"slices"
	"testing"

	"github.com/berthproject/berth/sim"
)

// TestPropertyNobodyIsHomelessInACalmDrain plays worlds in which nodes are drained, without
// faults and without pods that come later, and with room kept for evicted pods: no
// replacement of an evicted pod waits for a node.
func TestPropertyNobodyIsHomelessInACalmDrain(t *testing.T) {
	drained := 0
	for seed := *first; seed < *first+seedsToPlay(); seed++ {
		s := GenerateDraining(seed)
		s.Spec.Faults = nil
		s.Spec.API.BindsPerSecond = 0 // otherwise replacements wait for their binds
		s.Spec.Policy.Flags = slices.DeleteFunc(s.Spec.Policy.Flags, func(f string) bool { return f == "--keep-evicted-pod-homes=false" })
		for i := range s.Spec.Workload {
			s.Spec.Workload[i].Arrive.After.Duration, s.Spec.Workload[i].Arrive.Over.Duration = 0, 0
		}
		out, err := Play(t.Context(), s, sim.Options{})
		if err != nil || len(out.Problems) > 0 {
			t.Errorf("seed %d: %v %s", seed, err, list(out.Problems))
			continue
		}
		drained += out.Summary.Drain.Nodes
		if n := out.Summary.Drain.Homeless; n > 0 {
			t.Errorf("seed %d: %d of %d evicted pods had no home", seed, n, out.Summary.Drain.Pods)
		}
	}
	t.Logf("%d nodes were drained", drained)
	if drained == 0 {
		t.Error("no node was drained")
	}
}
