package sim_test

import (
	"strings"
	"testing"
)

// TestHeadroomInAWorld has a buffer of two chunks of 2 CPUs, with nodes bought for it, in a
// world where Berth crashes; and a request for three pods, which is booked and expires.
func TestHeadroomInAWorld(t *testing.T) {
	s, log := play(t, `  nodeGroups: [{name: g, max: 20, launchDelay: {min: 10s, max: 60s}, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}]
  workload: [{name: w, kind: Job, copies: 3, count: 5, arrive: {over: 5m, pattern: poisson}, runFor: {min: 1m, max: 4m}, `+container+`}]
  faults: [{kind: CrashBerth, at: [3m]}]
  objects:
  - apiVersion: v1
    kind: PodTemplate
    metadata: {name: t}
    template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, resources: {requests: {cpu: "2"}}}]}}
  - apiVersion: autoscaling.x-k8s.io/v1beta1
    kind: CapacityBuffer
    metadata: {name: web}
    spec: {podTemplateRef: {name: t}, replicas: 2}
  - apiVersion: autoscaling.x-k8s.io/v1
    kind: ProvisioningRequest
    metadata: {name: r}
    spec: {provisioningClassName: best-effort-atomic-scale-up.autoscaling.x-k8s.io, podSets: [{podTemplateRef: {name: t}, count: 3}]}
`)
	text := strings.Join(log, "\n")
	for _, want := range []string{"HeadroomSet for CapacityBuffer default/web: 2 chunk(s)", "RoomKept pod default/capacity-buffer-web-0-1",
		"Booked for ProvisioningRequest default/r: room for 3 pod(s) on nodes being added", "BookingEnded for ProvisioningRequest default/r: its reservation has expired"} {
		if !strings.Contains(text, want) {
			t.Errorf("the ledger has no %q:\n%s", want, text)
		}
	}
	if s.Pods.Completed != 15 {
		t.Errorf("%d pods completed, want 15", s.Pods.Completed)
	}
}
