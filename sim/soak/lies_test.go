package soak

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// TestPropertyAProviderThatLiesBreaksNothing plays random worlds whose cloud, for half an hour,
// makes two nodes for one, or none without saying so, or some of half the size, and for some
// minutes can't say what nodes look like: no invariant of the core or the world is broken, and
// none is left with pods that a node group could take. After nodes of half the size that may
// be: new ones are planned for like the newest.
func TestPropertyAProviderThatLiesBreaksNothing(t *testing.T) {
	until := metav1.Duration{Duration: 30 * time.Minute}
	for _, kinds := range [][]string{{scenario.ExtraInstance, scenario.LaunchVanishes}, {scenario.WrongShape}} {
		for seed := uint64(1); seed <= 12; seed++ {
			world := Generate(seed)
			for _, kind := range kinds {
				world.Spec.Faults = append(world.Spec.Faults, scenario.Fault{Kind: kind, Rate: 0.3, Until: until})
			}
			world.Spec.Faults = append(world.Spec.Faults, scenario.Fault{Kind: scenario.NoTemplate,
				From: metav1.Duration{Duration: 2 * time.Minute}, Until: metav1.Duration{Duration: 8 * time.Minute}})
			out, err := Play(t.Context(), world, sim.Options{Check: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, problem := range out.Problems {
				if kinds[0] != scenario.WrongShape || !strings.Contains(problem, "waits, though a node more of group") {
					t.Errorf("world %d with %v: %s", seed, kinds, problem)
				}
			}
		}
	}
}
