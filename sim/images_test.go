package sim_test

import (
	"fmt"
	"testing"
)

// oneLaunch is a Job of one pod for which a node is made, whose disk writes 100 MB/s. The first %s
// is a list of the images that are on the node's disk from the start.
const oneLaunch = `  nodeGroups: [{name: g, max: 5, images: %s, launchDelay: {min: 10s, max: 10s}, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}]
  images:
  - {name: base, layers: [{digest: base, bytes: 9G}]}
  - {name: task, layers: [{digest: base, bytes: 9G}, {digest: own, bytes: 1G}]}
  storage: {sharedRate: 100M}
  workload:
  - {name: w, kind: Job, count: 1, runFor: {min: 1m, max: 1m}, template: {spec: {containers: [{name: c, image: task, resources: {requests: {cpu: "3"}}}]}}}
`

// startsIn returns how long the pod of oneLaunch takes to run when these images are baked into the
// nodes' disks.
func startsIn(t *testing.T, baked string) float64 {
	t.Helper()
	s, _ := play(t, fmt.Sprintf(oneLaunch, baked))
	if s.Pods.Completed != 1 || s.Nodes.Peak != 1 {
		t.Fatalf("%d pods completed, %d nodes at the peak", s.Pods.Completed, s.Nodes.Peak)
	}
	return s.TimeToRunning.Max
}

// about checks a number of seconds, of which what isn't pulled may take two.
func about(t *testing.T, what string, got, want float64) {
	t.Helper()
	if got < want-2 || got > want+2 {
		t.Errorf("%s takes %.1f s, want about %.1f s", what, got, want)
	}
}

// TestOfASplitImageTheRestIsPulled bakes no image, the large base of the task's image, and all of
// it: the node pulls what isn't there.
func TestOfASplitImageTheRestIsPulled(t *testing.T) {
	baked := startsIn(t, "[task]")
	about(t, "a pull of 10 GB", startsIn(t, "[]")-baked, 100)
	about(t, "a pull of 1 GB on top of a baked base", startsIn(t, "[base]")-baked, 10)
}
