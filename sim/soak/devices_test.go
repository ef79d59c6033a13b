package soak

import (
	"fmt"
	"testing"

	"github.com/berthproject/berth/sim"
)

// TestDevices is TestSoak with worlds in which pods claim devices.
func TestDevices(t *testing.T) { playWorlds(t, GenerateDevices) }

// TestDeviceWorldsHaveWhatTheyAreFor counts what happens in worlds with devices: claims are given devices, binds that fail
// take them back, the controller frees them, devices aren't ready at once, claims lose devices that keep
// their pod from every node, and pods claim them in each way.
func TestDeviceWorldsHaveWhatTheyAreFor(t *testing.T) {
	var sum sim.DeviceStats
	ways := map[string]int{}
	for seed := range uint64(40) {
		s := GenerateDevices(seed)
		for _, w := range s.Spec.Workload {
			for _, c := range w.Claims {
				ways[fmt.Sprintf("shared %t, alternatives %t", c.Shared, len(c.FirstAvailable) > 0)]++
			}
		}
		if extended(&s.Spec) {
			ways["extended"]++
		}
		out, err := Play(t.Context(), s, sim.Options{})
		if err != nil || len(out.Problems) > 0 {
			t.Fatalf("seed %d: %v %s", seed, err, list(out.Problems))
		}
		sum.Given += out.Devices.Given
		sum.TakenBack += out.Devices.TakenBack
		sum.Freed += out.Devices.Freed
		sum.NotReady += out.Devices.NotReady
		sum.Deallocated += out.Devices.Deallocated
	}
	if sum.Given < 100 || sum.TakenBack == 0 || sum.Freed == 0 || sum.NotReady == 0 || sum.Deallocated == 0 {
		t.Errorf("got %+v, want at least 100 claims with devices, and some of each", sum)
	}
	if len(ways) != 5 {
		t.Errorf("pods claim devices in the ways %v, want each of five", ways)
	}
}

// smallDevices has two nodes for pods that share claims, have their own, and wait until their devices are ready.
const smallDevices = `apiVersion: berth.dev/v1alpha1
kind: Scenario
metadata: {name: small-devices}
spec:
  seed: 5
  deviceClasses: [{name: gpu, driver: gpu.example.com}, {name: nic, driver: nic.example.com}]
  nodes:
  - name: n
    count: 2
    template: {allocatable: {cpu: "4", memory: 8Gi, pods: "20"}}
    devices:
    - {driver: gpu.example.com, name: gpu, count: 2}
    - {driver: nic.example.com, name: nic, shared: true, capacity: {bandwidth: {value: 100G}}, bindingConditions: [example.com/attached]}
  workload:
  - {name: train, kind: Job, count: 6, runFor: {min: 30s, max: 1m}, claims: [{name: gpu, class: gpu}],
    template: {spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}}
  - {name: group, count: 3, arrive: {over: 30s}, runFor: {min: 1m, max: 1m}, claims: [{name: gpu, class: gpu, shared: true}, {name: nic, class: nic, capacity: {bandwidth: 40G}}],
    template: {spec: {containers: [{name: c, resources: {requests: {cpu: 500m}}}]}}}
  faults: [{kind: AnswerLost, rate: 0.3, until: 2m}, {kind: APIError, rate: 0.3, until: 2m}]
  end: {at: 4h, quiet: 12m}
`

// TestPropertyACrashAtAnyStepLeavesNoDeviceTwiceOrForGood plays a small world in which calls fail, and again with Berth
// crashing after each of its Steps in turn that has something to do: every invariant holds, and all pods get what they
// claim.
func TestPropertyACrashAtAnyStepLeavesNoDeviceTwiceOrForGood(t *testing.T) {
	if calm := crashAtEveryStep(t, player(t, "small-devices.yaml", smallDevices), 9); calm.Devices.TakenBack == 0 {
		t.Error("no write of a claim is taken back: the crashes show little")
	}
}
