package drive_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyOutcomesLateAndInAnyOrderLeaveNothingUnsettled drives random worlds, in
// which pods, nodes, buffers and booked requests come and go while work is under way. When every outcome has been
// reported and time has passed, the core waits for nothing, and has each pod on the node,
// or nominated to the node, that the API has.
//
// So it fails when the outcome of a bind, preemption, taint, eviction, order, deletion or
// plan is lost between worker and core: the core goes on waiting. The outcome of a
// nomination matters only when it couldn't be written, and then to few worlds:
// TestTheCoreActsOnEachOutcome has it.
func TestPropertyOutcomesLateAndInAnyOrderLeaveNothingUnsettled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newLate(t)
		w.failures = 15
		for range rapid.IntRange(5, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 11).Draw(t, "what") {
			case 0:
				w.serial++
				w.addNode(testkit.Node(fmt.Sprint("n", w.serial)).Alloc("cpu", "4", "memory", "16Gi", "pods", "12").Obj(), "")
			case 1:
				if names := slices.Sorted(maps.Keys(w.nodes)); len(names) > 0 {
					w.removeNode(rapid.SampledFrom(names).Draw(t, "node"))
				}
			case 2, 3:
				if uids := slices.Sorted(maps.Keys(w.pods)); len(uids) > 0 {
					w.removePod(rapid.SampledFrom(uids).Draw(t, "pod"))
				}
			case 4, 5, 6, 7:
				w.serial++
				p := testkit.Pod(fmt.Sprint("p", w.serial)).Req("cpu", rapid.SampledFrom([]string{"500m", "1500m", "3", "5"}).Draw(t, "cpu"), "memory", "1Gi").
					Priority(rapid.Int32Range(0, 2).Draw(t, "priority")).Obj()
				if name := rapid.SampledFrom([]string{"", "", "r", "s"}).Draw(t, "consumes"); name != "" {
					p.Labels = map[string]string{"app": "web"} // a buffer's, perhaps
					p.Annotations = map[string]string{autoscalingapi.ConsumeAnnotation: name}
				}
				w.pods[p.UID] = p
				w.showPod(p.UID)
			case 10, 11:
				w.changeHeadroom()
			}
			wait := rapid.SampledFrom([]time.Duration{0, time.Second, 10 * time.Second, time.Minute}).Draw(t, "wait")
			w.step(wait, rapid.IntRange(0, 6).Draw(t, "happens"))
		}
		w.rest()
		for _, problem := range w.driver.Core().Unsettled() {
			t.Errorf("unsettled: %s", problem)
		}
		if api, state := w.podsOnNodes(); !maps.Equal(api, state) {
			t.Errorf("the core has pods on %v, the API on %v", state, api)
		}
		if api, state := w.nominations(); !maps.Equal(api, state) {
			t.Errorf("the core has pods nominated to %v, the API to %v", state, api)
		}
		if t.Failed() {
			t.Fatalf("history:\n%s", w.log)
		}
	})
}
