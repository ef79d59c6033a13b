package soak

import (
	"testing"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/sim"
)

// TestPodGroups is TestSoak with worlds in which pods are members of pod groups.
func TestPodGroups(t *testing.T) { playWorlds(t, GeneratePodGroups) }

// TestPodGroupWorldsHaveWhatTheyAreFor counts what happens in worlds with pod groups: groups are placed,
// and wait, members' binds fail, and Berth crashes.
func TestPodGroupWorldsHaveWhatTheyAreFor(t *testing.T) {
	sum := map[string]int{}
	topology, devices := 0, 0
	for seed := range uint64(40) {
		s := GeneratePodGroups(seed)
		for _, w := range s.Spec.Workload {
			if w.PodGroup != nil && w.PodGroup.Topology != "" {
				topology++
			}
			if w.PodGroup != nil && len(w.Claims) > 0 {
				devices++
			}
		}
		out, err := Play(t.Context(), s, sim.Options{})
		if err != nil || len(out.Problems) > 0 {
			t.Fatalf("seed %d: %v %s", seed, err, list(out.Problems))
		}
		for kind, n := range out.Summary.Decisions {
			sum[kind] += n
		}
	}
	if placed, waits, failed := sum[string(step.GroupPlaced)], sum[string(step.GroupWaits)], sum[string(step.Unplaced)]; placed < 100 || waits < 100 || failed < 20 {
		t.Errorf("groups were placed %d times and waited %d times, and %d binds failed; want 100, 100 and 20 at least", placed, waits, failed)
	}
	if topology < 10 || devices < 10 {
		t.Errorf("%d groups require a topology and %d claim devices, want 10 of each at least", topology, devices)
	}
}

// smallGangs has two gangs that fit into a zone each, one in which both fit together, and pods that would
// take the room of members that aren't bound.
const smallGangs = `apiVersion: berth.dev/v1alpha1
kind: Scenario
metadata: {name: small-gangs}
spec:
  seed: 5
  nodes:
  - {name: a, count: 2, zones: [a], template: {allocatable: {cpu: "2", memory: 8Gi, pods: "20"}}}
  - {name: b, count: 2, zones: [b], template: {allocatable: {cpu: "2", memory: 8Gi, pods: "20"}}}
  workload:
  - {name: train, kind: Job, copies: 2, count: 4, runFor: {min: 20m, max: 20m}, podGroup: {minCount: 4, topology: topology.kubernetes.io/zone},
    template: {spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}}
  - {name: small, kind: Job, count: 6, arrive: {over: 20s}, runFor: {min: 20m, max: 20m}, template: {spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}}
  faults: [{kind: AnswerLost, rate: 0.3, until: 2m}, {kind: APIError, rate: 0.3, until: 2m}]
  end: {at: 6h, quiet: 26m}
`

// TestPropertyACrashAtAnyStepLeavesNoGangInPart plays a small world in which binds fail, and again with
// Berth crashing after each of its Steps in turn that has something to do: no gang stays without its other
// members, and in the end all pods have run.
func TestPropertyACrashAtAnyStepLeavesNoGangInPart(t *testing.T) {
	crashAtEveryStep(t, player(t, "small-gangs.yaml", smallGangs), 14)
}
