package queue

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestInvariantsNoticeWhatIsBroken breaks one thing at a time in a queue with pods at all
// stages.
func TestInvariantsNoticeWhatIsBroken(t *testing.T) {
	for _, c := range []struct {
		want  string
		smash func(q *Queue, item func(string) *Item)
	}{
		{"active1 is at 0 of the heap active, and says 1", func(_ *Queue, item func(string) *Item) { item("active1").at = 1 }},
		{"active2 comes before its parent default/active1 in the heap active", func(_ *Queue, item func(string) *Item) { item("active2").queued.Queued = 0 }},
		{"active1 is active, and isn't in the heap for it", func(q *Queue, _ func(string) *Item) { q.active.items = q.active.items[1:] }},
		{"active1 is in the heap active, and not in the queue", func(q *Queue, item func(string) *Item) { delete(q.items, item("active1").Pod().UID) }},
		{"active1 is in the queue as pod-other", func(q *Queue, item func(string) *Item) { q.items["pod-other"] = item("active1") }},
		{"pods are in heaps, and", func(_ *Queue, item func(string) *Item) { item("active1").stage = InFlight }},
		{"failed is backoff, and isn't in the heap for it", func(_ *Queue, item func(string) *Item) { item("failed").afterError = false }},
		{"probe is backoff, and isn't in the heap for it", func(q *Queue, _ func(string) *Item) { q.backoff.items = nil }},
		{"waits is unschedulable, and isn't in the heap for it", func(_ *Queue, item func(string) *Item) { item("waits").nominated = true }},
		{"waits is unschedulable, and its class doesn't wait", func(_ *Queue, item func(string) *Item) { item("waits").class = item("active1").class }},
		{"0 pods are gated, and 1 are counted", func(_ *Queue, item func(string) *Item) { item("gated").stage = InFlight }},
		{"1 pods are held, and 0 are counted", func(q *Queue, _ func(string) *Item) { q.held = 0 }},
		{"held is held, and held with a class: false", func(_ *Queue, item func(string) *Item) { item("held").heldWith = nil }},
		{"flies is in flight, and held with a class: true", func(q *Queue, item func(string) *Item) { item("flies").heldWith = item("held").heldWith }},
		{"has 1 held pods, and counts 2", func(_ *Queue, item func(string) *Item) { item("held").heldWith.held = 2 }},
		{"waits is unschedulable, and a probe", func(q *Queue, item func(string) *Item) { item("waits").probeOf = item("probe").probeOf }},
		{"is probing for a fit without a probe", func(_ *Queue, item func(string) *Item) { item("probe").probeOf = nil }},
		{"is waiting without a diagnosis", func(q *Queue, item func(string) *Item) { q.waiting[item("waits").class].diagnosis = nil }},
		{"waits without a pod", func(q *Queue, item func(string) *Item) {
			q.waiting[item("active1").class] = q.newWaiting(time.Unix(0, 0), item("active1").class, &engine.Diagnosis{})
		}},
		{"is exhausted, with 1 pods that wait and 0 held ones", func(q *Queue, item func(string) *Item) { q.waiting[item("waits").class].state = exhausted }},
		{"waits as class", func(q *Queue, item func(string) *Item) {
			q.waiting[item("active1").class] = q.waiting[item("waits").class]
		}},
	} {
		t.Run(c.want, func(t *testing.T) {
			q, item := everyStage()
			if broken := q.Invariants(); broken != nil {
				t.Fatalf("before anything is broken: %v", broken)
			}
			c.smash(q, item)
			if broken := q.Invariants(); !slices.ContainsFunc(broken, func(line string) bool { return strings.Contains(line, c.want) }) {
				t.Errorf("broken is %q, want a line with %q", broken, c.want)
			}
		})
	}
}

// everyStage returns a queue with pods at all stages, which are found by their names.
func everyStage() (q *Queue, item func(string) *Item) {
	schema := cluster.NewSchema()
	e := testkit.Must(engine.New(cluster.New(schema), plugins.Default(schema, plugins.Options{}), engine.Options{}))
	now := time.Unix(1000, 0)
	q = New(DefaultConfig(), framework.ByPriority)
	item = func(name string) *Item { return q.Get(testkit.Pod(name).UID) }
	add := func(name, cpu string) *Item {
		pod := schema.ParsePod(testkit.Pod(name).Req("cpu", cpu).Obj())
		q.Add(now, pod, e.Class(pod), nil)
		return q.Pop(now)
	}
	q.Reject(now, add("waits", "1"), &engine.Diagnosis{})
	q.Hold(now, add("held", "2"), &engine.Diagnosis{})
	for _, name := range []string{"probe", "next"} {
		q.Reject(now, add(name, "3"), &engine.Diagnosis{})
	}
	q.Wake(now, func(c *engine.Class, d *engine.Diagnosis) (engine.Help, *engine.Diagnosis) {
		if c == item("probe").class {
			return engine.Fits, d
		}
		return engine.NoHelp, d
	})
	q.Update(add("gated", "4"), schema.ParsePod(testkit.Pod("gated").Obj()), e.Class(schema.ParsePod(testkit.Pod("gated").Obj())), &framework.Reason{})
	q.Fail(now, add("failed", "4"))
	add("flies", "4")
	for _, name := range []string{"active1", "active2"} {
		pod := schema.ParsePod(testkit.Pod(name).Req("cpu", "5").Obj())
		q.Add(now, pod, e.Class(pod), nil)
	}
	return q, item
}
