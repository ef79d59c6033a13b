package sim

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/internal/test/testkit"
)

// TestDaemonSetsPullOnEachNewNode: the image of a DaemonSet's pod, 2 GB at 100 MB/s, is pulled to each
// node that comes without it, and other pods of the node wait until it is there.
func TestDaemonSetsPullOnEachNewNode(t *testing.T) {
	w := newTestWorld(t, `  images:
  - {name: agent, layers: [{bytes: 2G}]}
  - {name: task, layers: [{bytes: 1G}]}
  storage: {sharedRate: 100M}
  workload:
  - {name: agent, kind: DaemonSet, template: {spec: {containers: [{name: c, image: agent}]}}}
  - {name: task, count: 1, arrive: {after: 2m}, template: {spec: {containers: [{name: c, image: task}]}}}
`)
	running := func(after time.Duration, want string) {
		t.Helper()
		w.pass(after)
		var got []string
		for _, p := range w.sortedPods() {
			if p.ready {
				name, _, _ := strings.Cut(p.obj.Name, "-")
				got = append(got, name+" on "+p.obj.Spec.NodeName)
			}
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("at %s there run %q, want %q", w.now, got, want)
		}
	}
	w.addNodes("n1")
	w.pass(time.Second)
	w.bindAll(t, "n1")
	running(10*time.Second, "")
	running(10*time.Second, "agent on n1")

	baked := testkit.Node("n2").Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj()
	baked.Status.Images = []v1.ContainerImage{{Names: []string{"agent"}}}
	w.addNode(baked, nil)
	w.pass(time.Second)
	w.bindAll(t, "n2")
	running(0, "agent on n1, agent on n2")

	w.pass(2*time.Minute - w.now - time.Second)
	w.addNodes("n3")
	w.pass(500 * time.Millisecond)
	w.bindAll(t, "n3") // the agent's pull begins
	w.bindAll(t, "n3") // the task has come
	running(10*time.Second, "agent on n1, agent on n2")
	running(5*time.Second, "agent on n1, agent on n2, agent on n3") // 25.5 s after it was bound
	running(10*time.Second, "agent on n1, agent on n2, agent on n3, task on n3")
}
