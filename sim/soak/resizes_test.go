package soak

import (
	"math/rand/v2"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// withResizes has the pods of some services of a world resized in place: to less, to what may have to wait, and to
// what no node has. In most worlds such pods move.
func withResizes(s *scenario.Scenario, seed uint64) *scenario.Scenario {
	d := dice{rand.New(rand.NewPCG(seed, 0x726573697a65))}
	sp := &s.Spec
	for i := range sp.Workload {
		w := &sp.Workload[i]
		if w.Kind == "DaemonSet" || d.maybe(40) {
			continue
		}
		w.Resize = &scenario.Resize{After: d.span(time.Minute, 12*time.Minute), Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(one(d, "50m", "700m", "1500m", "2", "3", "64"))}}
		if d.maybe(30) {
			w.Resize.Requests[v1.ResourceMemory] = resource.MustParse(one(d, "100Mi", "2Gi", "5Gi"))
		}
	}
	if d.maybe(80) {
		sp.Policy.Flags = append(sp.Policy.Flags, "--move-pending-resizes-after="+one(d, "5s", "1m", "3m"))
	}
	return s
}

// resizeWorlds is how many worlds TestResizes plays.
const resizeWorlds = 8

// TestResizes plays worlds in which nodes are drained, with resizes in place, beside all their other faults: no pod is
// evicted for a resize without room for its replacement, no room is kept twice, and in the end no pod waits that could
// have moved.
func TestResizes(t *testing.T) {
	moved, pending := 0, 0
	for seed := *first; seed < *first+resizeWorlds; seed++ {
		out, err := Play(t.Context(), withResizes(GenerateDraining(seed), seed), sim.Options{})
		if err != nil || len(out.Problems) > 0 {
			t.Errorf("seed %d: %v %s", seed, err, list(out.Problems))
		}
		if out.Summary != nil {
			moved, pending = moved+out.Summary.Resizes.Moved, pending+out.Summary.Resizes.Deferred+out.Summary.Resizes.Infeasible
		}
	}
	if moved == 0 || pending == 0 {
		t.Errorf("%d resizes had to wait, and %d pods moved: the worlds show nothing", pending, moved)
	}
}

// smallResize has two full nodes with pods that grow, and one pod that grows to more than any node has.
const smallResize = `apiVersion: berth.dev/v1alpha1
kind: Scenario
metadata: {name: small-resize}
spec:
  seed: 5
  nodeGroups:
  - name: g
    min: 2
    initial: 2
    max: 5
    launchDelay: {min: 20s, max: 20s}
    startup: {min: 5s, max: 5s}
    template: {allocatable: {cpu: "4", memory: 8Gi, pods: "20"}}
  workload:
  - {name: web, kind: ReplicaSet, count: 4, maxUnavailable: 2, resize: {after: {min: 2m, max: 3m}, requests: {cpu: 2500m}},
    template: {spec: {terminationGracePeriodSeconds: 5, containers: [{name: c, resources: {requests: {cpu: 1500m}}}]}}}
  - {name: huge, kind: ReplicaSet, count: 1, resize: {after: {min: 2m, max: 2m}, requests: {cpu: "9"}}, deleteAfter: 20m,
    template: {spec: {containers: [{name: c, resources: {requests: {cpu: 500m}}}]}}}
  policy:
    flags: [--scan-interval=10s, --scale-down-unneeded-time=20m, --move-pending-resizes-after=30s]
  end: {at: 4h, quiet: 12m}
`

// TestPropertyACrashAtAnyStepOfAMoveBreaksNothing plays a small world in which pods move for their resize, and again
// with Berth crashing after each of its Steps in turn that has something to do: every invariant holds, and no resize
// is pending in the end.
func TestPropertyACrashAtAnyStepOfAMoveBreaksNothing(t *testing.T) {
	text := player(t, "small-resize.yaml", smallResize)
	play := func(o sim.Options) Outcome {
		out := text(o)
		if out.Summary != nil && out.Summary.Resizes.Waiting > 0 {
			t.Errorf("a crash after Step %d: %d resizes are pending in the end", o.CrashAfter, out.Summary.Resizes.Waiting)
		}
		return out
	}
	if calm := crashAtEveryStep(t, play, 0); calm.Summary.Resizes.Moved == 0 {
		t.Error("no pod has moved: the crashes show nothing")
	}
}
