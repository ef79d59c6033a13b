package sim

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyBudgetsCountWhatIsThere: whatever comes, changes and goes in whatever order,
// each budget's counts are those that a count of all pods finds.
func TestPropertyBudgetsCountWhatIsThere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newTestWorld(t, "  end: {at: 1h}\n")
		w.addNodes("n0", "n1", "n2")
		owners := []*controller{nil, nil, {key: controllerKey{"ReplicaSet", "default", "a"}, replicas: 3, removed: true}, {key: controllerKey{"Job", "default", "b"}, replicas: 5, removed: true}}
		var all []*pod
		for i := range rapid.IntRange(20, 60).Draw(rt, "changes") {
			any := func() *pod { return rapid.SampledFrom(all).Draw(rt, "pod") }
			what := rapid.SampledFrom([]string{"pod", "pod", "bind", "bind", "time", "delete", "end", "remove", "budget", "drop budget", "node"}).Draw(rt, "what")
			if len(all) == 0 {
				what = "pod"
			}
			switch what {
			case "pod":
				b := testkit.Pod(fmt.Sprint("p", i)).Label("app", rapid.SampledFrom([]string{"w", "x"}).Draw(rt, "app"))
				all = append(all, w.addPod(b.Obj(), rapid.SampledFrom(owners).Draw(rt, "owner")))
			case "bind":
				_ = w.bind(any().obj.UID, rapid.SampledFrom([]string{"n0", "n1", "n2"}).Draw(rt, "node"))
			case "time":
				w.pass(time.Duration(rapid.IntRange(0, 9000).Draw(rt, "ms")) * time.Millisecond)
			case "delete":
				w.deletePod(any())
			case "end":
				if p := any(); p.ready {
					w.endPod(p, v1.PodSucceeded)
				}
			case "remove":
				w.removePod(any())
			case "budget":
				w.create(budgetFor(fmt.Sprint("b", i), rapid.SampledFrom([]string{"max 1", "min 1", "max 50%"}).Draw(rt, "spec")))
			case "drop budget":
				if len(w.budgets) > 0 {
					w.remove(rapid.SampledFrom(w.budgets).Draw(rt, "budget").obj)
				}
			case "node":
				if n := w.nodes[rapid.SampledFrom([]string{"n0", "n1", "n2"}).Draw(rt, "node")]; n != nil {
					w.removeNode(n, false)
				}
			}
			for _, b := range w.budgets {
				if healthy, expected := w.countAll(b); b.counts.healthy != healthy || b.counts.expected != expected {
					rt.Fatalf("after change %d (%s): budget %s has counted %d healthy of %d, want %d of %d", i, what, b.obj.Name, b.counts.healthy, b.counts.expected, healthy, expected)
				}
			}
		}
	})
}
