package soak

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/berthproject/berth/core/weighing"
	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

var weighed = flag.Int("weighed", 12, "how many random worlds to play by each policy of preemption")

// TestWorldsComeToRestByEachPolicy plays random worlds whose pods and pod groups ask for nodes before they
// preempt. The default policy is in all other worlds.
func TestWorldsComeToRestByEachPolicy(t *testing.T) {
	for _, policy := range []weighing.Policy{weighing.BuyFirst, weighing.Cheapest} {
		for name, generate := range map[string]func(uint64) *scenario.Scenario{"pods": Generate, "pod groups": gangsThatPreempt} {
			t.Run(fmt.Sprintf("%s, %s", policy, name), func(t *testing.T) {
				preempted := 0
				for i := range *weighed {
					seed := *first + uint64(i)
					run, err := scenario.Parse(fmt.Sprintf("soak-%d.yaml", seed), Text(generate(seed)))
					if err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					for i := range run.Scheduler.Profiles {
						w := weighing.Default()
						w.Policy, w.MaxWait = policy, time.Minute
						run.Scheduler.Profiles[i].Weighing = &w
					}
					out, err := playRun(t.Context(), run, sim.Options{})
					if err != nil || len(out.Problems) > 0 {
						t.Errorf("seed %d: %v, %v", seed, err, out.Problems)
						continue
					}
					preempted += out.Summary.Pods.Preempted
				}
				if t.Logf("%d pods were preempted", preempted); preempted == 0 && *weighed >= 12 {
					t.Error("nobody was preempted")
				}
			})
		}
	}
}

// gangsThatPreempt are the worlds of GenerateGangs with a priority for each group.
func gangsThatPreempt(seed uint64) *scenario.Scenario {
	d := dice{rand.New(rand.NewPCG(seed, 0x7072696f))}
	s := GenerateGangs(seed)
	for i := range s.Spec.Workload {
		priority := int32(d.from(0, 3))
		s.Spec.Workload[i].Template.Spec.Priority = &priority
		s.Spec.Objects[i]["spec"].(map[string]any)["priority"] = priority // the i-th object is the PodGroup of the i-th workload
	}
	return s
}
