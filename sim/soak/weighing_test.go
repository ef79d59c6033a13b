package soak

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/berthproject/berth/core/weighing"
	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

var weighed = flag.Int("weighed", 12, "how many random worlds to play by each policy of preemption")

// TestWorldsComeToRestByEachPolicy plays random worlds whose pods ask for nodes before they
// preempt. The default policy is in all other worlds.
func TestWorldsComeToRestByEachPolicy(t *testing.T) {
	for _, policy := range []weighing.Policy{weighing.BuyFirst, weighing.Cheapest} {
		t.Run(string(policy), func(t *testing.T) {
			for i := range *weighed {
				seed := *first + uint64(i)
				run, err := scenario.Parse(fmt.Sprintf("soak-%d.yaml", seed), Text(Generate(seed)))
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				for i := range run.Scheduler.Profiles {
					w := weighing.Default()
					w.Policy, w.MaxWait = policy, time.Minute
					run.Scheduler.Profiles[i].Weighing = &w
				}
				if out, err := playRun(t.Context(), run, sim.Options{}); err != nil || len(out.Problems) > 0 {
					t.Errorf("seed %d: %v, %v", seed, err, out.Problems)
				}
			}
		})
	}
}
