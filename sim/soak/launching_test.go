package soak

import (
	"testing"

	"github.com/berthproject/berth/sim"
)

// TestPropertyAdaptiveLaunchesBreakNothing plays random worlds with adaptive limits of
// launches instead of their own: no invariant of the core or the world is broken, and none
// is left with pods that a node group could take.
func TestPropertyAdaptiveLaunchesBreakNothing(t *testing.T) {
	for seed := uint64(1); seed <= 15; seed++ {
		world := Generate(seed)
		world.Spec.Policy.Flags = append(world.Spec.Policy.Flags, "--max-nodes-launching=adaptive", "--max-nodes-launching-per-group=adaptive")
		out, err := Play(t.Context(), world, sim.Options{Check: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range out.Problems {
			t.Errorf("world %d: %s", seed, problem)
		}
	}
}
