package sim

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestSumsOverTimeHoldWhatWasTrueBeforeEachChange lets an hour pass before each change, and
// reads after it what was requested, what there was to request, and what was paid until then.
func TestSumsOverTimeHoldWhatWasTrueBeforeEachChange(t *testing.T) {
	w := newTestWorld(t, `  nodeGroups:
  - {name: g, max: 3, initial: 2, pricePerHour: 3, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
  end: {at: 48h}
`)
	const milliHour = 1000 * 3600 // of useCPU and haveCPU: milli-CPUs × seconds
	g := w.groups[0]
	first, second := g.instances[0], g.instances[1]
	var p *pod
	for _, c := range []struct {
		change string
		do     func()
		// Sums since the beginning: CPUs × hours, node hours, cost.
		requested, allocatable, nodes, cost float64
	}{
		{"a pod of one CPU comes", func() { p = w.addPod(testkit.Pod("p").Req("cpu", "1").Obj(), nil) }, 0, 8, 2, 6},
		{"it is bound to the first node", func() {
			if err := w.bind(p.obj.UID, first.name); err != nil {
				t.Fatal(err)
			}
		}, 0, 16, 4, 12},
		{"the second node isn't ready any more", func() {
			w.changeNode(second.node, func(o *v1.Node) { o.Status.Conditions = nil })
		}, 1, 24, 6, 18},
		{"a third instance boots", func() { w.bill(w.newInstance(g, "late")) }, 2, 28, 8, 24},
		{"the pod ends", func() { w.endPod(p, v1.PodSucceeded) }, 3, 32, 11, 33},
		{"the first node is removed, its instance stays", func() { w.removeNode(first.node, false) }, 3, 36, 14, 42},
		{"the second instance is taken away", func() { w.terminate(second, false) }, 3, 36, 17, 51},
		{"nothing", func() {}, 3, 36, 19, 57},
	} {
		w.pass(time.Hour)
		c.do()
		s := w.stats
		s.integrate()
		got := fmt.Sprintf("%.2f of %.2f CPU hours, %.2f node hours, cost %.2f", s.useCPU/milliHour, s.haveCPU/milliHour, s.NodeHours, s.Cost)
		if want := fmt.Sprintf("%.2f of %.2f CPU hours, %.2f node hours, cost %.2f", c.requested, c.allocatable, c.nodes, c.cost); got != want {
			t.Errorf("%s: until then got %s, want %s", c.change, got, want)
		}
	}
}

// TestCancelledLaunchesAreCountedApart deletes instances before they are nodes: one that no pod
// needs any more, and one that took too long.
func TestCancelledLaunchesAreCountedApart(t *testing.T) {
	w := newTestWorld(t, "  nodeGroups: [{name: g, max: 9, template: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}]\n")
	g := w.groups[0]
	for _, x := range []struct {
		name   string
		reason step.RemovalReason
	}{{"unneeded", step.InstanceCancelled}, {"late", ""}} {
		m := w.newInstance(g, x.name)
		g.target++
		if err := w.deleteInstance("g", step.NodeDeletion{Group: "g", Instance: m.id, Reason: x.reason}); err != nil {
			t.Fatal(err)
		}
	}
	if s := w.stats.Summary; w.stats.CancelledLaunches != 1 || w.stats.FailedLaunches != 1 {
		t.Errorf("%d launches were cancelled and %d failed, want one of each: %+v", w.stats.CancelledLaunches, w.stats.FailedLaunches, s.Nodes)
	}
}
