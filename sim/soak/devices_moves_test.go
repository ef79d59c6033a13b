package soak

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// moving reads a world with devices in which groups have more nodes than they need at least, so that
// some are drained and consolidated, and in every second one pods preempt for devices.
func moving(t *testing.T, seed uint64) *scenario.Run {
	t.Helper()
	s := GenerateDevices(seed)
	for i := range s.Spec.NodeGroups {
		g := &s.Spec.NodeGroups[i]
		g.Min, g.Max = 1, g.Max+2
		g.Initial = g.Max
	}
	for i := range s.Spec.Workload {
		w := &s.Spec.Workload[i]
		w.Template.Spec.Priority = ptr.To(int32(i % 3))
		if i%2 == 0 { // its pods may be moved, and stay for as long as the world
			w.Kind, w.RunFor, w.DeleteAfter = "ReplicaSet", nil, metav1.Duration{}
		}
	}
	s.Spec.Policy.Flags = append(s.Spec.Policy.Flags, "--scale-down-utilization-threshold=1")
	if seed%3 == 0 {
		s.Spec.Policy.Flags = append(s.Spec.Policy.Flags, "--consolidation")
	}
	run, err := scenario.Parse(s.Metadata.Name+".yaml", Text(s))
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	for i := range run.Scheduler.Profiles {
		run.Scheduler.Profiles[i].DevicePreemption = seed%2 == 1
	}
	return run
}

// TestDevicesMove plays worlds in which nodes with devices are drained and pods preempt for them: every
// invariant holds, no device is given away twice, and none is kept for nobody.
func TestDevicesMove(t *testing.T) {
	preempted, drained := 0, 0
	for seed := *first; seed < *first+40; seed++ {
		out, err := playRun(t.Context(), moving(t, seed), sim.Options{})
		if err != nil || len(out.Problems) > 0 {
			t.Errorf("seed %d: %v %s", seed, err, list(out.Problems))
			continue
		}
		if seed%2 == 1 {
			preempted += out.Summary.Pods.Preempted
		}
		drained += out.Summary.Drain.Pods
	}
	if preempted == 0 || drained == 0 {
		t.Errorf("%d pods were preempted and %d drained, want some of each", preempted, drained)
	}
}
