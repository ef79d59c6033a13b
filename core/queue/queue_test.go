package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/plugins/prioritysort"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/internal/testkit"
)

type bench struct {
	*queue.Queue
	engine *engine.Engine
	schema *cluster.Schema
	now    time.Time
}

func newBench() *bench {
	schema := cluster.NewSchema()
	return &bench{
		Queue:  queue.New(queue.Config{}, prioritysort.Less),
		engine: testkit.Must(engine.New(cluster.New(schema), plugins.Default(schema, plugins.Options{}), engine.Options{})),
		schema: schema, now: time.Unix(100, 0),
	}
}

func (b *bench) add(name, cpu string, priority int32) {
	p := b.schema.ParsePod(testkit.Pod(name).Req("cpu", cpu).Priority(priority).Obj())
	b.Add(b.now, p, b.engine.Class(p), nil)
}

func (b *bench) pop() string {
	i := b.Pop(b.now)
	if i == nil {
		return "none"
	}
	return i.Pod().Object.Name
}

func (b *bench) reject() *queue.Item {
	i := b.Pop(b.now)
	b.Reject(b.now, i, &engine.Diagnosis{})
	return i
}

func TestOrderIsPriorityThenTime(t *testing.T) {
	b := newBench()
	b.add("first", "1", 0)
	b.add("second", "1", 0)
	b.now = b.now.Add(time.Second)
	b.add("urgent", "1", 10)
	for _, want := range []string{"urgent", "first", "second", "none"} {
		if got := b.pop(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestBackoffDoublesToTheMaximum(t *testing.T) {
	b := newBench()
	b.add("p", "1", 0)
	for _, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
		i := b.Pop(b.now)
		if i == nil {
			t.Fatal("the pod is not active after its backoff")
		}
		b.Fail(b.now, i)
		if got := b.NextWake().Sub(b.now); got != want*time.Second {
			t.Errorf("attempt %d backs off for %s, want %ds", i.Attempts(), got, want)
		}
		b.now = b.now.Add(want*time.Second - 1)
		if got := b.pop(); got != "none" {
			t.Errorf("%s came before its backoff was over", got)
		}
		b.now = b.now.Add(1)
	}
}

func TestAClassIsAskedOnceForAllItsPods(t *testing.T) {
	b := newBench()
	for i := range 5 {
		b.add(fmt.Sprint("small", i), "1", 0)
	}
	b.add("large", "8", 0)
	for range 6 {
		b.reject()
	}
	asked := 0
	small := b.engine.Class(b.schema.ParsePod(testkit.Pod("x").Req("cpu", "1").Priority(0).Obj()))
	b.Wake(b.now, func(c *engine.Class, d *engine.Diagnosis) (engine.Help, *engine.Diagnosis) {
		asked++
		if c == small {
			return engine.Fits, d
		}
		return engine.NoHelp, d
	}, nobody)
	if got := b.Counts(); asked != 2 || got != (queue.Counts{Backoff: 5, Unschedulable: 1}) {
		t.Errorf("asked %d times, counts %+v; want 2 and 5 backing off, 1 waiting", asked, got)
	}
	// Nothing else is active, so a rejected pod is tried before its backoff ends.
	if got := b.pop(); got != "small0" {
		t.Errorf("got %s, want small0", got)
	}
}

func TestStillRejectedUntilWoken(t *testing.T) {
	b := newBench()
	b.add("p", "1", 0)
	i := b.reject()
	if b.StillRejected(i.Class()) == nil {
		t.Error("the class waits, but isn't known to be rejected")
	}
	b.Wake(b.now, func(_ *engine.Class, d *engine.Diagnosis) (engine.Help, *engine.Diagnosis) { return engine.Fits, d }, nobody)
	if b.StillRejected(i.Class()) != nil {
		t.Error("the class was woken, but is still taken for rejected")
	}
}

func TestLeftoversAreSweptAndMarked(t *testing.T) {
	b := newBench()
	b.add("p", "1", 0)
	i := b.reject()
	b.now = b.now.Add(5*time.Minute - 1)
	b.Sweep(b.now)
	if i.Stage() != queue.Unschedulable {
		t.Error("swept too early")
	}
	b.now = b.now.Add(1)
	b.Sweep(b.now)
	if i.Stage() != queue.Active || !i.Swept() {
		t.Errorf("after 5 minutes: place %d, swept %v", i.Stage(), i.Swept())
	}
}

func TestUpdateMovesOnlyWhatARuleReads(t *testing.T) {
	b := newBench()
	b.add("p", "4", 0)
	i := b.reject()
	same := b.schema.ParsePod(testkit.Pod("p").Req("cpu", "4").Priority(0).Label("note", "x").Obj())
	b.Update(i, same, b.engine.Class(same), nil)
	if i.Stage() != queue.Unschedulable {
		t.Error("a label that no rule reads woke the pod")
	}
	smaller := b.schema.ParsePod(testkit.Pod("p").Req("cpu", "1").Priority(0).Obj())
	b.Update(i, smaller, b.engine.Class(smaller), nil)
	if i.Stage() != queue.Active {
		t.Error("a smaller request did not wake the pod")
	}
	b.Update(i, smaller, b.engine.Class(smaller), &framework.Reason{})
	if i.Stage() != queue.Gated || b.pop() != "none" {
		t.Error("a gate did not keep the pod out")
	}
	if !b.Remove(i.Pod().UID) || b.Counts() != (queue.Counts{}) {
		t.Errorf("after removal: %+v", b.Counts())
	}
}

// nobody is nominated to a node that would take it.
func nobody(*queue.Item) bool { return false }
