package soak

import (
	"testing"
	"time"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// smallDrain has five nodes, of which three are worth emptying once a service has gone. No
// budget forbids the eviction of all pods of a node together, or it would depend on where they
// are whether the node can go.
const smallDrain = `apiVersion: berth.dev/v1alpha1
kind: Scenario
metadata: {name: small-drain}
spec:
  seed: 3
  nodeGroups:
  - name: g
    min: 1
    initial: 5
    max: 6
    launchDelay: {min: 20s, max: 20s}
    startup: {min: 5s, max: 5s}
    template: {allocatable: {cpu: "4", memory: 8Gi, pods: "20"}}
  workload:
  - {name: web, kind: ReplicaSet, count: 4, maxUnavailable: 4, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 500m}}}]}}}
  - {name: db, kind: StatefulSet, count: 2, maxUnavailable: 1, template: {spec: {terminationGracePeriodSeconds: 20,
    affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: db}}}]}},
    containers: [{name: c, resources: {requests: {cpu: 500m}}}]}}}
  - {name: agent, kind: DaemonSet, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 50m}}}]}}}
  - {name: gone, kind: ReplicaSet, count: 5, deleteAfter: 1m, template: {spec: {containers: [{name: c, resources: {requests: {cpu: "2"}}}]}}}
  policy:
    flags: [--scan-interval=10s, --scale-down-unneeded-time=20s, --scale-down-delay-after-add=0s, --scale-down-delay-after-failure=20s,
      --max-drain-parallelism=5, --unremovable-node-recheck-timeout=0s, --max-pod-eviction-time=1m]
  end: {at: 4h, quiet: 12m}
`

// TestPropertyACrashAtAnyStepOfADrainBreaksNothing plays a small world in which nodes are
// drained, and again with Berth crashing after each of its Steps in turn that has something to
// do: every invariant holds, and the cluster is as small in the end as it is without a crash.
func TestPropertyACrashAtAnyStepOfADrainBreaksNothing(t *testing.T) {
	play := player(t, "small-drain.yaml", smallDrain)
	busy, count := busySteps()
	calm := play(sim.Options{Hooks: []drive.Hook{count}})
	if len(calm.Problems) > 0 {
		t.Fatalf("without a crash: %s", list(calm.Problems))
	}
	if calm.Summary.Drain.Nodes == 0 {
		t.Error("no node was drained: the crashes show nothing")
	}
	same := 0
	for _, n := range *busy {
		out := play(sim.Options{CrashAfter: n})
		if len(out.Problems) > 0 {
			t.Fatalf("a crash after Step %d: %s", n, list(out.Problems))
		}
		if out.Digest == calm.Digest {
			same++
		}
		if got, want := out.Summary.Nodes.Final, calm.Summary.Nodes.Final; got > want {
			t.Errorf("a crash after Step %d: got %d nodes in the end, want %d", n, got, want)
		}
	}
	if same == len(*busy) {
		t.Error("no crash has changed a decision: there was none")
	}
	t.Logf("Berth crashed after each of %d Steps; %d nodes were drained without a crash", len(*busy), calm.Summary.Drain.Nodes)
}

// player returns what plays a world that a scenario describes.
func player(t *testing.T, name, text string) func(sim.Options) Outcome {
	return func(o sim.Options) Outcome {
		t.Helper()
		run, err := scenario.Parse(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		out, err := playRun(t.Context(), run, o)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

// busySteps returns a hook that collects the numbers of the Steps that have an input or decide something.
func busySteps() (*[]int, drive.Hook) {
	var busy []int
	steps := 0
	return &busy, drive.HookFunc(func(_ time.Time, _ time.Duration, in []step.Input, r *step.Ready) {
		if steps++; len(in) > 0 || len(r.Decisions) > 0 {
			busy = append(busy, steps)
		}
	})
}

// crashAtEveryStep plays a world, and again with Berth crashing after each of its Steps in turn that has
// something to do: every invariant holds, and as many pods are completed. It returns how the world ends without a crash.
func crashAtEveryStep(t *testing.T, play func(sim.Options) Outcome, completed int) Outcome {
	t.Helper()
	busy, count := busySteps()
	calm := play(sim.Options{Hooks: []drive.Hook{count}})
	if len(calm.Problems) > 0 || calm.Summary.Pods.Completed != completed {
		t.Fatalf("without a crash %d of %d pods are completed: %s", calm.Summary.Pods.Completed, completed, list(calm.Problems))
	}
	same := 0
	for _, n := range *busy {
		out := play(sim.Options{CrashAfter: n})
		if len(out.Problems) > 0 || out.Summary.Pods.Completed != completed {
			t.Fatalf("a crash after Step %d: %d of %d pods are completed: %s", n, out.Summary.Pods.Completed, completed, list(out.Problems))
		}
		if out.Digest == calm.Digest {
			same++
		}
	}
	if same == len(*busy) {
		t.Error("no crash has changed a decision: there was none")
	}
	t.Logf("Berth crashed after each of %d Steps", len(*busy))
	return calm
}
