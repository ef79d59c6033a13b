package sim_test

import (
	"testing"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// TestPodGroupsArePlacedWholeOrNotAtAll plays the racks of docs/pod-groups.md.
func TestPodGroupsArePlacedWholeOrNotAtAll(t *testing.T) { playExample(t, "pod-groups/racks") }

// TestRacksAreBoughtWhole plays the 40 gangs of docs/pod-groups.md for which two racks are short, by both policies. By
// Cluster Autoscaler's rules racks are filled with pods of several gangs, or bought for none.
func TestRacksAreBoughtWhole(t *testing.T) {
	const folder = "../examples/pod-groups/"
	runs, err := scenario.Load([]string{folder + "short.yaml", folder + "whole.yaml", folder + "member-by-member.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	var got [2]*scenario.Summary
	for i, run := range runs {
		w, err := sim.New(run, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got[i], err = w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got[i].Pods.Completed != 40*32 {
			t.Errorf("%s: %d pods have completed, want all of 40 gangs of 32", run.Name, got[i].Pods.Completed)
		}
	}
	whole, peers := got[0], got[1]
	if whole.Nodes.InVain != 0 || whole.Nodes.Launched != 38*16 {
		t.Errorf("%d nodes were bought, %d of them in vain; want 16 in each of 38 racks", whole.Nodes.Launched, whole.Nodes.InVain)
	}
	if peers.Nodes.InVain == 0 || peers.TimeToEnd.P90 < 1.5*whole.TimeToEnd.P90 || peers.GPUHours.Idle < 2*whole.GPUHours.Idle {
		t.Errorf("member by member %d nodes were bought in vain, nine tenths of the pods had ended after %.0f s, and %.0f GPU hours were idle; want more than 0, %.0f and %.0f",
			peers.Nodes.InVain, peers.TimeToEnd.P90, peers.GPUHours.Idle, whole.TimeToEnd.P90, whole.GPUHours.Idle)
	}
}
