package sim

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/internal/testkit"
)

// TestSumsOverTimeHoldWhatWasTrueInEachHour lets an hour pass after each change, and reads
// what was requested, what there was to request, and what was paid up to then.
func TestSumsOverTimeHoldWhatWasTrueInEachHour(t *testing.T) {
	w := newTestWorld(t, `  nodeGroups:
  - {name: g, max: 3, initial: 2, pricePerHour: 3, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
  end: {at: 48h}
`)
	const milliHour = 1000 * 3600 // of useCPU and haveCPU: milli-CPUs × seconds
	var p *pod
	node := func(i int) *node { return w.groups[0].instances[i].node }
	for _, c := range []struct {
		change string
		do     func()
		// Sums since the beginning: CPUs × hours, node hours, cost.
		requested, allocatable, nodes, cost float64
	}{
		{"two instances are nodes", func() {}, 0, 8, 2, 6},
		{"a pod of one CPU comes", func() { p = w.addPod(testkit.Pod("p").Req("cpu", "1").Obj(), nil) }, 0, 16, 4, 12},
		{"it is bound", func() {
			if err := w.bind(p.obj.UID, node(0).obj.Name); err != nil {
				t.Fatal(err)
			}
		}, 1, 24, 6, 18},
		{"the other node isn't ready any more", func() {
			w.changeNode(node(1), func(o *v1.Node) { o.Status.Conditions = nil })
		}, 2, 28, 8, 24},
		{"its instance is taken away", func() { w.terminate(w.groups[0].instances[1], true) }, 3, 32, 9, 27},
		{"the pod ends", func() { w.endPod(p, v1.PodSucceeded) }, 3, 36, 10, 30},
		{"the last instance is taken away", func() { w.terminate(w.groups[0].instances[0], true) }, 3, 36, 10, 30},
	} {
		c.do()
		w.pass(time.Hour)
		s := w.stats
		s.integrate()
		got := fmt.Sprintf("%.2f of %.2f CPU hours, %.2f node hours, cost %.2f", s.useCPU/milliHour, s.haveCPU/milliHour, s.NodeHours, s.Cost)
		if want := fmt.Sprintf("%.2f of %.2f CPU hours, %.2f node hours, cost %.2f", c.requested, c.allocatable, c.nodes, c.cost); got != want {
			t.Errorf("%s: after an hour got %s, want %s", c.change, got, want)
		}
	}
}
