package sim_test

import (
	"fmt"
	"testing"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// TestAProviderThatNeverAnswersInTime has no call for nodes or deletions answered. A third of the
// calls is carried out before the deadline, a third later, and a third never. Nothing is lost: the
// batch runs, no more nodes come than its group may have, none is deleted under a pod, and all go
// in the end.
func TestAProviderThatNeverAnswersInTime(t *testing.T) {
	repeated, unanswered := 0, 0
	for seed := range 10 {
		out := playUnanswered(t, seed)
		if out.Pods.Completed != 40 || out.Pods.Lost != 0 || out.Nodes.Final != 0 || out.Nodes.Peak > 25 {
			t.Errorf("seed %d: %d pods completed, %d lost, %d nodes at most and %d in the end; want 40, 0, 25 and 0", seed, out.Pods.Completed, out.Pods.Lost, out.Nodes.Peak, out.Nodes.Final)
		}
		repeated += out.Decisions["RemovalRepeated"]
		unanswered += out.Decisions["ScaleUpUnanswered"]
	}
	if repeated == 0 || unanswered == 0 {
		t.Errorf("%d removals were asked for again, and %d orders came to nothing; want some of each", repeated, unanswered)
	}
}

// playUnanswered plays a batch of 40 pods that need 20 nodes of at most 25.
func playUnanswered(t *testing.T, seed int) *scenario.Summary {
	t.Helper()
	run, err := scenario.Parse("unanswered.yaml", fmt.Appendf(nil, `apiVersion: berth.dev/v1alpha1
kind: Scenario
metadata: {name: unanswered}
spec:
  seed: %d
  nodeGroups:
  - {name: batch, max: 25, launchDelay: {min: 30s, max: 60s}, template: {allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}}
  workload:
  - {name: job, kind: Job, count: 40, runFor: {min: 2m, max: 4m}, template: {spec: {containers: [{name: main, resources: {requests: {cpu: "1900m"}}}]}}}
  policy: {flags: [--scale-down-unneeded-time=30s, --scale-down-delay-after-add=30s]}
  faults: [{kind: CloudNoAnswer, rate: 1, for: 1m}]
  end: {at: 6h, quiet: 30m}
`, seed))
	if err != nil {
		t.Fatal(err)
	}
	w, err := sim.New(run, sim.Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, broken := range w.Stats().Violations {
		t.Errorf("seed %d: %s", seed, broken)
	}
	t.Logf("seed %d: %.0f s, launched %d, decisions %v", seed, out.VirtualSeconds, out.Nodes.Launched, out.Decisions)
	return out
}
