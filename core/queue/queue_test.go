package queue_test

import (
	"maps"
	"testing"
	"time"

	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/queue"
)

// What the scripts in testdata don't draw.

// start is when tests begin.
var start = time.Unix(1000, 0)

// newQueue returns a queue with one pod, a, of class small, which is in flight.
func newQueue(k *kit) (*queue.Queue, *queue.Item) {
	q := queue.New(queue.DefaultConfig(), framework.ByPriority)
	q.Add(start, k.pod("a", 0), k.class("small"), nil)
	return q, q.Pop(start)
}

func ruledOut(message string) *engine.Diagnosis {
	return (&engine.Diagnosis{}).WithPreemption(engine.Preemption{RuledOut: true, Message: message})
}

// helps returns what to answer when classes are asked, and the diagnosis to keep.
func helps(h engine.Help, known *engine.Diagnosis) func(*engine.Class, *engine.Diagnosis) (engine.Help, *engine.Diagnosis) {
	return func(*engine.Class, *engine.Diagnosis) (engine.Help, *engine.Diagnosis) { return h, known }
}

// The class that waits has the diagnosis that is up to date; a pod that is tried
// takes it along.
func TestAWaitingClassKeepsTheNewestDiagnosis(t *testing.T) {
	k := newKit()
	q, a := newQueue(k)
	first, second, third := ruledOut("first"), ruledOut("second"), ruledOut("third")
	q.Reject(start, a, first)
	if got := q.StillRejected(k.class("small")); got != first {
		t.Errorf("after the rejection the class waits for %v, want %v", got, first)
	}
	q.Wake(start, helps(engine.NoHelp, second))
	if got := q.StillRejected(k.class("small")); got != second {
		t.Errorf("after a change that doesn't help the class waits for %v, want what the question returned, %v", got, second)
	}
	q.Refresh(k.class("small"), third)
	if got := q.StillRejected(k.class("small")); got != third {
		t.Errorf("after refreshing the class waits for %v, want %v", got, third)
	}
	if a.Diagnosis() != first {
		t.Errorf("the diagnosis that the pod was rejected with has become %v", a.Diagnosis())
	}
	q.Wake(start, helps(engine.Fits, third))
	if got := a.Diagnosis(); got != third {
		t.Errorf("the pod that is tried has %v, want the class's, %v", got, third)
	}
	q.Refresh(k.class("small"), first)
	if got := q.StillRejected(k.class("small")); got != nil {
		t.Errorf("a class that is woken is still rejected, for %v", got)
	}
}

// A pod that leaves by itself takes the class's diagnosis along, too.
func TestAPodThatCeasesToWaitTakesTheDiagnosisAlong(t *testing.T) {
	for name, wait := range map[string]func(*queue.Queue, *queue.Item, *engine.Diagnosis){
		"unschedulable": func(q *queue.Queue, a *queue.Item, d *engine.Diagnosis) { q.Reject(start, a, d) },
		"held":          func(q *queue.Queue, a *queue.Item, d *engine.Diagnosis) { q.Hold(start, a, d) },
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit()
			q, a := newQueue(k)
			wait(q, a, ruledOut("first"))
			second := ruledOut("second")
			q.Wake(start, helps(engine.NoHelp, second))
			q.Activate(a)
			if got := a.Diagnosis(); got != second {
				t.Errorf("the pod has %v, want %v", got, second)
			}
		})
	}
}

func TestASweptPodThatAChangeHasHelpedIsNotSwept(t *testing.T) {
	q, a := newQueue(newKit())
	q.Reject(start, a, ruledOut(""))
	q.Sweep(start.Add(5 * time.Minute))
	if !a.Swept() {
		t.Fatal("the pod was swept, and doesn't say so")
	}
	q.SetHelped(a)
	if a.Swept() {
		t.Error("a change would have woken the pod, and it still counts as swept")
	}
}

func TestWhenAPodWasTried(t *testing.T) {
	q, a := newQueue(newKit())
	if !a.Queued().Equal(start) || !a.Tried().IsZero() || a.Attempts() != 0 {
		t.Errorf("a new pod was queued at %s and tried at %s, %d times", a.Queued(), a.Tried(), a.Attempts())
	}
	rejected, failed := start.Add(time.Second), start.Add(2*time.Second)
	q.Reject(rejected, a, ruledOut(""))
	if !a.Tried().Equal(rejected) || a.Attempts() != 1 {
		t.Errorf("a rejected pod was tried at %s, %d times; want %s, 1", a.Tried(), a.Attempts(), rejected)
	}
	q.Activate(a)
	q.Pop(failed)
	q.Fail(failed, a)
	if !a.Tried().Equal(failed) || a.Attempts() != 2 {
		t.Errorf("a pod with an error was tried at %s, %d times; want %s, 2", a.Tried(), a.Attempts(), failed)
	}
}

// Zero is a value: nothing backs off, and what waits is always left over. What failed,
// or was swept in vain, still isn't tried again before the clock has moved, so that
// whoever tries pods until there is none comes to an end.
func TestWithoutBackoffNothingIsTriedTwiceAtTheSameInstant(t *testing.T) {
	k := newKit()
	q := queue.New(queue.Config{}, framework.ByPriority)
	a := q.Add(start, k.pod("a", 0), k.class("small"), nil)
	now := start
	for range 3 {
		q.Fail(now, q.Pop(now))
		if got := q.Pop(now); got != nil {
			t.Fatalf("after an error at %s %s is tried again at the same instant", now, got.Pod().Name())
		}
		if got, want := q.NextWake(), now.Add(time.Nanosecond); !got.Equal(want) {
			t.Fatalf("after an error the queue wakes at %s, want %s", got, want)
		}
		now = q.NextWake()
	}
	for range 3 {
		q.Reject(now, q.Pop(now), ruledOut(""))
		q.Sweep(now)
		if a.Stage() != queue.Unschedulable {
			t.Fatalf("after a rejection at %s the pod is swept at the same instant", now)
		}
		now = q.NextWake()
		q.Sweep(now)
	}
	q.Reject(now, q.Pop(now), ruledOut(""))
	q.Wake(now, helps(engine.Fits, ruledOut("")))
	if a.Stage() != queue.Active {
		t.Errorf("a change helps the rejected pod, and it is %s", a.Stage())
	}
}

// The counts bear kube-scheduler's names (scheduler_queue_incoming_pods_total).
func TestIncomingCountsWhatBroughtPodsToWhichQueue(t *testing.T) {
	k := newKit()
	q, a := newQueue(k)
	type incoming = queue.Incoming
	at, want := start, map[incoming]int{{Queue: "active", Event: "UnschedulablePodAdd"}: 1}
	for _, x := range []struct {
		name string
		do   func()
		want []incoming
	}{
		{"rejected", func() { q.Reject(at, a, ruledOut("")) }, []incoming{{Queue: "unschedulable", Event: "ScheduleAttemptFailure"}}},
		{"woken during its backoff", func() { q.Wake(at, helps(engine.Fits, ruledOut(""))) }, []incoming{{Queue: "backoff", Event: "ClusterChange"}}},
		{"popped early", func() { q.Pop(at) }, []incoming{{Queue: "active", Event: "PopFromBackoffQ"}}},
		{"failed", func() { q.Fail(at, a) }, []incoming{{Queue: "backoff", Event: "ScheduleAttemptFailure"}}},
		{"its backoff ends", func() { at = at.Add(time.Second); q.Pop(at) }, []incoming{{Queue: "active", Event: "BackoffComplete"}}},
		{"rejected again", func() { q.Reject(at, a, ruledOut("")) }, []incoming{{Queue: "unschedulable", Event: "ScheduleAttemptFailure"}}},
		{"swept", func() { at = at.Add(5 * time.Minute); q.Sweep(at) }, []incoming{{Queue: "active", Event: "UnschedulableTimeout"}}},
		{"changed", func() { q.Update(a, k.pod("a", 0), k.class("large"), nil) }, []incoming{{Queue: "active", Event: "UnschedulablePodUpdate"}}},
		{"tried again", func() { q.Pop(at); q.Requeue(a, a.Pod()) }, []incoming{{Queue: "active", Event: "ForceActivate"}}},
	} {
		x.do()
		for _, k := range x.want {
			want[k]++
		}
		if got := q.Incoming(); !maps.Equal(got, want) {
			t.Errorf("%s: incoming are %v, want %v", x.name, got, want)
		}
	}
}

// The scheduler keeps the classes of pods at every stage.
func TestClassesAreThoseOfAllPods(t *testing.T) {
	k := newKit()
	q, a := newQueue(k)
	q.Reject(start, a, ruledOut(""))
	q.Add(start, k.pod("b", 0), k.class("medium"), gateOf(true))
	q.Add(start, k.pod("c", 0), k.class("large"), nil)
	q.Pop(start)
	want := map[*engine.Class]bool{k.class("small"): true, k.class("medium"): true, k.class("large"): true}
	if got := q.Classes(); !maps.Equal(got, want) {
		t.Errorf("classes %v, want %v", got, want)
	}
}

// A pod's class is changed by the caller only where no heap depends on it.
func TestTheClassOfAWaitingPodIsTheQueues(t *testing.T) {
	k := newKit()
	q, a := newQueue(k)
	q.Reject(start, a, ruledOut(""))
	defer func() {
		if recover() == nil {
			t.Error("the class of an unschedulable pod was changed, and nothing was said")
		}
	}()
	q.SetClass(a, k.class("large"))
}

// A gated pod that changes and stays gated has the class that it is signed with now: nothing else
// would sign it again before it is tried.
func TestAGatedPodThatChangesHasItsNewClass(t *testing.T) {
	k := newKit()
	q, a := newQueue(k)
	gate := &framework.Reason{}
	q.Update(a, k.pod("a", 0), k.class("small"), gate)
	q.Update(a, k.pod("a", 0), k.class("large"), gate)
	if a.Class() != k.class("large") || a.Stage() != queue.Gated {
		t.Errorf("it is %s, of class %p; want gated, of class %p", a.Stage(), a.Class(), k.class("large"))
	}
}
