package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/berthproject/berth/core/step"
)

// TestWhatDrainsCostPods follows one of two pods of a ReplicaSet: Berth evicts it after a
// minute, its replacement is bound later, or never.
func TestWhatDrainsCostPods(t *testing.T) {
	for _, c := range []struct {
		name  string
		then  func(t *testing.T, w *World)
		low   time.Duration // of the gap
		high  time.Duration
		lacks int // homeless
	}{
		{"bound at once", func(t *testing.T, w *World) { w.pass(soon); w.bindAll(t, "g-0002") }, time.Second, 5 * time.Second, 0},
		{"bound just in time", func(t *testing.T, w *World) { w.pass(29 * time.Second); w.bindAll(t, "g-0002") }, 29 * time.Second, 34 * time.Second, 0},
		{"bound late", func(t *testing.T, w *World) { w.pass(time.Minute); w.bindAll(t, "g-0002") }, time.Minute, 65 * time.Second, 1},
		{"deleted, and its successor bound", func(t *testing.T, w *World) {
			w.pass(20 * time.Second)
			for _, p := range w.sortedPods() {
				if p.replaces != nil {
					w.deletePod(p)
				}
			}
			w.pass(20 * time.Second)
			w.bindAll(t, "g-0002")
		}, 40 * time.Second, 46 * time.Second, 0},
		{"never bound", func(_ *testing.T, w *World) { w.pass(time.Hour); w.noteChange() }, time.Hour, time.Hour, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t, `  nodeGroups: [{name: g, initial: 2, max: 2, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}]
`)
			w.create(replicaSet(2))
			w.pass(soon)
			w.bindAll(t, "g-0001")
			w.pass(time.Minute - w.now)
			if err := w.evictForBerth(step.Eviction{UID: w.sortedPods()[0].obj.UID}); err != nil {
				t.Fatal(err)
			}
			c.then(t, w)
			d := w.stats.summary().Drain
			if gap := time.Duration(d.GapSeconds * float64(time.Second)); gap < c.low || gap > c.high || d.Homeless != c.lacks || d.Pods != 1 {
				t.Errorf("got %d pods, %d homeless, a gap of %s; want 1, %d, %s to %s", d.Pods, d.Homeless, gap, c.lacks, c.low, c.high)
			}
		})
	}
}

// TestDrainedAndBoughtBackNodes: nodes count as drained that Berth deleted after evictions,
// and as bought back when the next of their group is ordered within half an hour.
func TestDrainedAndBoughtBackNodes(t *testing.T) {
	w := newTestWorld(t, `  nodeGroups:
  - {name: g, initial: 4, max: 9, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
  - {name: h, max: 9, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
`)
	w.create(replicaSet(1))
	w.pass(soon)
	w.bindAll(t, "g-0001")
	order := func(group string, n int) func() {
		return func() {
			if err := w.increaseTarget(group, n); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(byBerth bool) func() { return func() { w.terminate(w.groups[0].instances[0], byBerth) } }
	for _, s := range []struct {
		name string
		do   func()
		wait time.Duration
		want string
	}{
		{"a pod is evicted", func() { _ = w.evictForBerth(step.Eviction{UID: w.sortedPods()[0].obj.UID}) }, time.Minute, "0 drained in 0s, 0 bought back"},
		{"its node goes", remove(true), time.Minute, "1 drained in 1m0s, 0 bought back"},
		{"an empty one goes", remove(true), time.Minute, "1 drained in 1m0s, 0 bought back"},
		{"the cloud takes one", remove(false), time.Minute, "1 drained in 1m0s, 0 bought back"},
		{"another group grows", order("h", 1), time.Minute, "1 drained in 1m0s, 0 bought back"},
		{"the group grows by one", order("g", 1), 27 * time.Minute, "1 drained in 1m0s, 1 bought back"},
		{"it grows by three, half an hour after the second removal", order("g", 3), 0, "1 drained in 1m0s, 2 bought back"},
		{"one goes", remove(true), 31 * time.Minute, "1 drained in 1m0s, 2 bought back"},
		{"it grows too late to count", order("g", 1), 0, "1 drained in 1m0s, 2 bought back"},
	} {
		s.do()
		got := w.stats.summary()
		took := time.Duration(got.Drain.Duration * float64(time.Second))
		if text := fmt.Sprintf("%d drained in %s, %d bought back", got.Drain.Nodes, took, got.BoughtBack); text != s.want {
			t.Errorf("%s: got %s, want %s", s.name, text, s.want)
		}
		w.pass(s.wait)
	}
}
