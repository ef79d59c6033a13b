package sim_test

import (
	"fmt"
	"testing"

	"github.com/berthproject/berth/sim"
)

// TestACustomersNightComesFromNothingAndGoesBack plays examples/scale/customer-night.yaml, which
// expects 2,000 nodes at the peak, none in the end, all tasks completed and no failed launch.
func TestACustomersNightComesFromNothingAndGoesBack(t *testing.T) {
	t.Parallel()
	s := playExampleWith(t, sim.Options{}, "scale/customer-night")
	if s.TimeToRunning.Max > 40*60 {
		t.Errorf("the last task started after %.0f s, want 40 minutes at most", s.TimeToRunning.Max)
	}
	if s.PDBViolations+s.Violations > 0 || s.Pods.Lost+s.Pods.Evicted > 0 {
		t.Errorf("%d budgets and %d invariants were violated, %d pods were lost and %d evicted; want none", s.PDBViolations, s.Violations, s.Pods.Lost, s.Pods.Evicted)
	}
}

// TestBakedLayersAreNotPulled: of an image with two layers a node pulls those that its node image
// lacks, and the image of a DaemonSet, which every new node pulls too, takes from the same disk.
func TestBakedLayersAreNotPulled(t *testing.T) {
	const spec = `  nodeGroups: [{name: g, max: 1, launchDelay: {min: 10s, max: 10s}, startup: {min: 1s, max: 1s}, diskRate: 1G, images: [%s], template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}]
  images:
  - {name: none, layers: []}
  - {name: base, layers: [{digest: base, bytes: 100G}]}
  - {name: task, layers: [{digest: base, bytes: 100G}, {digest: task, bytes: 20G}]}
  - {name: agent, layers: [{bytes: 30G}]}
  workload:
  - {name: agent, kind: DaemonSet, template: {spec: {containers: [{name: c, image: %s}]}}}
  - {name: w, kind: Job, count: 1, runFor: {min: 1m, max: 1m}, template: {spec: {containers: [{name: c, image: task, resources: {requests: {cpu: "1"}}}]}}}
`
	all := func(baked, agent string) float64 {
		s, _ := play(t, fmt.Sprintf(spec, baked, agent))
		return s.TimeToRunning.Max
	}
	whole := all("none", "none")
	for _, x := range []struct {
		baked, agent string
		saved        float64 // seconds
	}{{"base", "none", 100}, {"task", "none", 120}, {"none", "agent", -30}, {"base", "agent", 70}} {
		if saved := whole - all(x.baked, x.agent); saved < x.saved-2 || saved > x.saved+2 {
			t.Errorf("with %s baked and the DaemonSet's image %s the last pod starts %.1f s sooner, want %.0f s", x.baked, x.agent, saved, x.saved)
		}
	}
}
