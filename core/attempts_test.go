package core_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// attempting is a core whose attempts are counted.
type attempting struct {
	core  *core.Core
	now   time.Time
	bound map[string]int // by the pod's name, with which inputs it was bound: the first are 1
	taken int            // how often inputs were taken in
}

func newAttempting(t *testing.T, options engine.Options) *attempting {
	t.Helper()
	schema := cluster.NewSchema()
	cfg := core.DefaultConfig(plugins.Default(schema, plugins.Options{}))
	cfg.Engine = options
	return &attempting{core: testkit.Must(core.New(schema, cfg)), now: time.Unix(1000, 0), bound: map[string]int{}}
}

// step takes inputs in, and goes on until nothing is left to try.
func (a *attempting) step(wait time.Duration, in ...step.Input) (out []step.Preemption) {
	a.now = a.now.Add(wait)
	a.taken++
	for r := a.core.Step(a.now, door.Must(in...)...); ; r = a.core.Step(a.now) {
		for _, b := range r.Binds {
			a.bound[b.Name] = a.taken
		}
		out = append(out, r.Preemptions...)
		if r.NextWake.IsZero() || r.NextWake.After(a.now) {
			return out
		}
	}
}

// attempts returns how many attempts there were.
func (a *attempting) attempts() int { s := a.core.Stats(); return s.Scheduled + s.Unschedulable }

// eventCase are pods that wait for what comes: the cases of event handling of kube-scheduler's own
// benchmark. The i-th event lets one pod in.
type eventCase struct {
	name   string
	before func(i int) []step.Input // nil for nothing
	pod    func(i int) step.Input
	event  func(i int) step.Input
	// vain is how many attempts an event may cost beside that of the pod that is bound.
	vain int
}

func eventCases() (out []eventCase) {
	node := func(i int) *testkit.NodeBuilder {
		return testkit.Node(fmt.Sprint("n", i)).Alloc("cpu", "4", "memory", "32Gi", "pods", "110").Zone(fmt.Sprint("z", i))
	}
	comes := func(i int) step.Input { return step.NodeSet{Node: node(i).Obj()} }
	cordoned := func(i int) []step.Input { return []step.Input{step.NodeSet{Node: node(i).Cordon().Obj()}} }
	old := func(i int) *testkit.PodBuilder {
		return testkit.Pod(fmt.Sprint("old", i)).Req("cpu", "3").On(node(i).Name)
	}
	full := func(i int) []step.Input { return []step.Input{comes(i), step.PodSet{Pod: old(i).Obj()}} }
	gone := func(i int) step.Input { return step.PodGone{UID: old(i).UID} }
	shared := func(i int) *testkit.PodBuilder { return testkit.Pod(fmt.Sprint("p", i)).Req("cpu", "3") }
	own := func(i int) *testkit.PodBuilder { return shared(i).RequireIn(v1.LabelTopologyZone, fmt.Sprint("z", i)) }
	for _, x := range []struct {
		name string
		pod  func(i int) *testkit.PodBuilder
		vain int
	}{{"any pod", shared, 1}, {"one pod", own, 0}} {
		pod := func(i int) step.Input { return step.PodSet{Pod: x.pod(i).Obj()} }
		out = append(out, eventCase{x.name + " waits for a pod to be deleted", full, pod, gone, x.vain},
			eventCase{x.name + " waits for a node to come", nil, pod, comes, x.vain},
			eventCase{x.name + " waits for a node to be uncordoned", cordoned, pod, comes, x.vain})
	}
	return append(out, eventCase{"one pod waits for its gate to be lifted", func(i int) []step.Input { return []step.Input{comes(i)} },
		func(i int) step.Input { return step.PodSet{Pod: shared(i).Gate("example.com/wait").Obj()} },
		func(i int) step.Input { return step.PodSet{Pod: shared(i).Obj()} }, 0},
		eventCase{"one pod waits for the pod that its affinity names", func(i int) []step.Input { return []step.Input{comes(i)} },
			func(i int) step.Input {
				return step.PodSet{Pod: testkit.Pod(fmt.Sprint("p", i)).Req("cpu", "1").Together(v1.LabelTopologyZone, "app", fmt.Sprint(i)).Obj()}
			},
			func(i int) step.Input {
				return step.PodSet{Pod: testkit.Pod(fmt.Sprint("named", i)).Label("app", fmt.Sprint(i)).Req("cpu", "1").On(node(i).Name).Obj()}
			}, 1})
}

// waiters is how many pods wait.
const waiters = 100

// play returns how many attempts there were before the first event and after it.
func (c *eventCase) play(t *testing.T, options engine.Options) (first, then int) {
	a := newAttempting(t, options)
	for i := range waiters {
		if c.before != nil {
			a.step(0, c.before(i)...)
		}
	}
	for i := range waiters {
		a.step(0, c.pod(i))
	}
	first = a.attempts()
	for i := range waiters {
		a.step(time.Second, c.event(i))
		if len(a.bound) != i+1 {
			t.Fatalf("%s: after %d events %d pods are bound", c.name, i+1, len(a.bound))
		}
	}
	return first, a.attempts() - first
}

// TestAttemptsPerEventAreBounded has 100 pods wait for what comes for one after the other. With each
// event one is bound. A pod is tried when it comes and when it is let in. Where any of them is let in, the
// next of its class is tried in vain; and when the first pod with an affinity is placed, pods with
// labels that it reads are classified again, and tried once. Without hints each event has every class
// tried again that its backoff lets try, and classes alone keep the attempts few.
func TestAttemptsPerEventAreBounded(t *testing.T) {
	hinted, unhinted := 0, 0
	for _, c := range eventCases() {
		t.Run(c.name, func(t *testing.T) {
			first, then := c.play(t, engine.Options{})
			if most := waiters * (1 + c.vain); first > waiters || then > most {
				t.Errorf("%d attempts when pods came and %d later, want %d and %d at most", first, then, waiters, most)
			}
			_, without := c.play(t, engine.Options{Unhinted: true})
			if without < then {
				t.Errorf("%d attempts with hints and %d without", then, without)
			}
			t.Logf("%d attempts with hints, %d without", first+then, first+without)
			hinted, unhinted = hinted+then, unhinted+without
		})
	}
	if unhinted < 10*hinted {
		t.Errorf("%d attempts with hints and %d without, want a tenth at most", hinted, unhinted)
	}
}

// Sizes of the test below.
const (
	besideSteps   = 200
	besideEvery   = 5 // Steps between two preemptors
	besideAnswers = 20
)

// TestPreemptionsBesideCostOthersNothing has a pod that fits come in each of 200 Steps, while every fifth
// Step another has three leave for it, whose calls are answered 20 Steps later. Each pod that fits is
// bound with the inputs that it comes with, and after one attempt; a preemptor takes two.
func TestPreemptionsBesideCostOthersNothing(t *testing.T) {
	a := newAttempting(t, engine.Options{})
	for i := range besideSteps / besideEvery {
		name := fmt.Sprint("n", i)
		in := []step.Input{step.NodeSet{Node: testkit.Node(name).Alloc("cpu", "4", "memory", "32Gi", "pods", "1000").Obj()}}
		for k := range 4 {
			in = append(in, step.PodSet{Pod: testkit.Pod(fmt.Sprint("low", i, "-", k)).Req("cpu", "900m").On(name).Obj()})
		}
		a.step(0, in...)
	}
	var leaving [besideSteps + 2*besideAnswers][]step.Preemption // by the Step in which they are answered
	for i := range besideSteps + besideAnswers {
		var in []step.Input
		for _, x := range leaving[i] {
			in = append(in, step.PreemptionDone{UID: x.UID, By: x.By}, step.PodGone{UID: x.UID})
		}
		preempts := i < besideSteps && i%besideEvery == 0
		if preempts {
			in = append(in, step.PodSet{Pod: testkit.Pod(fmt.Sprint("high", i)).Req("cpu", "3").Priority(10).Obj()})
		}
		plain := testkit.Pod(fmt.Sprint("plain", i)).Req("cpu", "1m").Priority(5)
		begun := a.step(100*time.Millisecond, append(in, step.PodSet{Pod: plain.Obj()})...)
		if preempts != (len(begun) == 3) {
			t.Fatalf("in Step %d %d pods are asked to leave, and a preemptor comes: %v", i, len(begun), preempts)
		}
		leaving[i+besideAnswers] = begun
		if a.bound[plain.Name] != a.taken {
			t.Fatalf("in Step %d the pod that fits isn't bound", i)
		}
	}
	preemptors := besideSteps / besideEvery
	if got, want := a.attempts(), besideSteps+besideAnswers+2*preemptors; got != want || len(a.bound) != besideSteps+besideAnswers+preemptors {
		t.Errorf("%d attempts, and %d pods are bound; want %d and %d", got, len(a.bound), want, besideSteps+besideAnswers+preemptors)
	}
}
