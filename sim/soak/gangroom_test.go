package soak

import (
	"context"
	"testing"
	"time"

	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// playWithRoom plays a world in which room is kept for gangs.
func playWithRoom(ctx context.Context, name string, text []byte, keep framework.KeepRoom, o sim.Options) (Outcome, error) {
	run, err := scenario.Parse(name, text)
	if err != nil {
		return Outcome{}, err
	}
	for i := range run.Scheduler.Profiles {
		run.Scheduler.Profiles[i].KeepRoom = keep
	}
	return playRun(ctx, run, o)
}

// TestGangRoom is TestSoak with worlds in which room is kept for gangs that others overtake.
func TestGangRoom(t *testing.T) {
	sum := playWorldsBy(t, GenerateGangRoom, func(ctx context.Context, s *scenario.Scenario) (Outcome, error) {
		return playWithRoom(ctx, s.Metadata.Name+".yaml", Text(s), drawKeepRoom(s.Spec.Seed), sim.Options{})
	})
	kept, lost := sum.Decisions[string(step.RoomKept)], sum.Decisions[string(step.RoomLost)]
	t.Logf("room was kept %d times and given back %d times", kept, lost)
	if seedsToPlay() >= 20 && (kept == 0 || lost == 0) {
		t.Error("room was never kept, or never given back")
	}
}

// smallRoom has two nodes that a stream of pods keeps full, and a gang that needs both.
const smallRoom = `apiVersion: berth.dev/v1alpha1
kind: Scenario
metadata: {name: small-room}
spec:
  seed: 7
  nodes:
  - {name: n, count: 2, template: {allocatable: {cpu: "2", memory: 8Gi, pods: "20"}}}
  workload:
  - {name: stream, kind: Job, copies: 24, count: 1, arrive: {over: 15m}, runFor: {min: 3m, max: 4m},
    template: {spec: {activeDeadlineSeconds: 360, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}}
  - {name: train, kind: Job, count: 2, arrive: {after: 2m}, runFor: {min: 5m, max: 5m}, podGroup: {minCount: 2},
    template: {spec: {containers: [{name: c, resources: {requests: {cpu: "2"}}}]}}}
  end: {at: 6h, quiet: 26m}
`

// smallDeviceRoom is the same with devices: a node has two, a pod of the stream takes one, and a member of the gang needs
// both of a node. CPUs are never short.
const smallDeviceRoom = `apiVersion: berth.dev/v1alpha1
kind: Scenario
metadata: {name: small-device-room}
spec:
  seed: 7
  deviceClasses:
  - {name: gpu, driver: gpu.example.com}
  nodes:
  - name: n
    count: 2
    template: {allocatable: {cpu: "20", memory: 8Gi, pods: "20"}}
    devices: [{driver: gpu.example.com, name: gpu, count: 2}]
  workload:
  - {name: stream, kind: Job, copies: 24, count: 1, arrive: {over: 15m}, runFor: {min: 3m, max: 4m}, claims: [{name: gpu, class: gpu}],
    template: {spec: {activeDeadlineSeconds: 360, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}}
  - {name: train, kind: Job, count: 2, arrive: {after: 2m}, runFor: {min: 5m, max: 5m}, podGroup: {minCount: 2}, claims: [{name: gpus, class: gpu, count: 2}],
    template: {spec: {containers: [{name: c, resources: {requests: {cpu: "2"}}}]}}}
  end: {at: 6h, quiet: 26m}
`

// TestPropertyACrashWhileRoomIsKept plays small worlds in which room is kept for a gang, and again with Berth
// crashing after each of its Steps in turn that has something to do: all pods run in the end. Without room the gang is
// overtaken.
func TestPropertyACrashWhileRoomIsKept(t *testing.T) {
	for name, text := range map[string]string{"small-room.yaml": smallRoom, "small-device-room.yaml": smallDeviceRoom} {
		play := func(keep framework.KeepRoom) func(o sim.Options) Outcome {
			return func(o sim.Options) Outcome {
				out, err := playWithRoom(t.Context(), name, []byte(text), keep, o)
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
		}
		keep := framework.KeepRoom{After: time.Minute, For: 10 * time.Minute}
		calm := crashAtEveryStep(t, play(keep), 26)
		if calm.Summary.Decisions[string(step.RoomKept)] == 0 {
			t.Errorf("%s: no room was kept: the crashes show nothing", name)
		}
		starts := func(o Outcome) float64 { return o.Summary.TimeToBound.Max }
		if without := play(framework.KeepRoom{})(sim.Options{}); starts(without) <= starts(calm) {
			t.Errorf("%s: the last pod starts %g s after it came without room, and %g with it", name, starts(without), starts(calm))
		}
	}
}
