package planning_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/planning"
	"github.com/berthproject/berth/core/step"
)

var start = time.Unix(1000, 0)

// turn returns what the core would hand to the machine at a time after start.
func turn(at time.Duration) *lifecycle.Turn {
	return &lifecycle.Turn{Now: start.Add(at), State: cluster.New(cluster.NewSchema()), Ready: &step.Ready{}}
}

// TestWhenAPlanIsAskedFor walks one machine through the table at the head of the
// package. A scan is due every 20 s, so two requests are at least 1 s apart.
func TestWhenAPlanIsAskedFor(t *testing.T) {
	m := planning.New(planning.Config{ScanInterval: 20 * time.Second, OnDemand: true})
	for _, x := range []struct {
		at        time.Duration
		what      string
		do        func(now time.Time)
		leftToTry bool
		state     planning.State
		ready     bool
		wake      time.Duration // -1 for never
	}{
		{at: 0, what: "no node group is known", state: planning.Unknown, wake: -1},
		{at: 0, what: "a pod finds no node, and there is nobody to ask", do: m.Want, state: planning.Unknown, wake: -1},
		{at: 5 * time.Second, what: "the provider tells of its groups", do: m.GroupsKnown, state: planning.Due, ready: true, wake: 0},
		{at: 5 * time.Second, what: "but pods are still to be tried", leftToTry: true, state: planning.Due, wake: 0},
		{at: 6 * time.Second, what: "none is left", do: func(time.Time) { m.Request(turn(6*time.Second), &autoscaler.Request{}) }, state: planning.Requested, wake: -1},
		{at: 7 * time.Second, what: "pods come while the planner works", do: m.Want, state: planning.Requested, wake: -1},
		{at: 6500 * time.Millisecond, what: "its plan comes soon", do: func(time.Time) { m.PlanMade(&autoscaler.Plan{Seq: 7}) }, state: planning.Idle, wake: 7 * time.Second},
		{at: 7 * time.Second, what: "the next is due after the least gap", state: planning.Due, ready: true, wake: 7 * time.Second},
		{at: 8 * time.Second, what: "it is asked for", do: func(time.Time) {
			m.Request(turn(8*time.Second), &autoscaler.Request{})
			m.PlanMade(&autoscaler.Plan{Seq: 9})
		}, state: planning.Idle, wake: 28 * time.Second},
		{at: 27 * time.Second, what: "nothing new has come: the next scan", state: planning.Idle, wake: 28 * time.Second},
		{at: 28 * time.Second, what: "it is due", leftToTry: true, state: planning.Due, wake: 28 * time.Second},
		{at: 47 * time.Second, what: "something has been left to try for long", leftToTry: true, state: planning.Due, wake: 28 * time.Second},
		{at: 48 * time.Second, what: "after a whole interval it waits no longer", leftToTry: true, state: planning.Due, ready: true, wake: 28 * time.Second},
	} {
		now := start.Add(x.at)
		if x.do != nil {
			x.do(now)
		}
		wake := time.Duration(-1)
		if at := m.NextWake(); !at.IsZero() {
			wake = max(at.Sub(start), 0)
		}
		if wake >= 0 && x.state == planning.Due && x.wake == 0 {
			wake = 0 // any time that has come
		}
		if got, ready := m.State(now), m.Ready(now, x.leftToTry); got != x.state || ready != x.ready || wake != x.wake {
			t.Errorf("at %s (%s): state %s, ready %t, wakes at %s; want %s, %t, %s", x.at, x.what, got, ready, wake, x.state, x.ready, x.wake)
		}
		for _, broken := range m.Invariants() {
			t.Errorf("at %s (%s): %s", x.at, x.what, broken)
		}
	}
	if m.KeepFrom() != 9 {
		t.Errorf("the journal is kept from %d, want 9, where the follower stood", m.KeepFrom())
	}
}

// TestWithoutFrequentLoops plans at each scan only.
func TestWithoutFrequentLoops(t *testing.T) {
	m := planning.New(planning.Config{ScanInterval: 20 * time.Second})
	m.GroupsKnown(start)
	m.Request(turn(0), &autoscaler.Request{})
	m.PlanMade(&autoscaler.Plan{})
	m.Want(start.Add(time.Second))
	if got := m.State(start.Add(19 * time.Second)); got != planning.Idle {
		t.Errorf("19 s after a scan: %s, want idle", got)
	}
	if got := m.State(start.Add(20 * time.Second)); got != planning.Due {
		t.Errorf("20 s after a scan: %s, want due", got)
	}
}

// TestPropertyEveryPodIsPlannedForSoon asks at random times, with pods that find no node
// and plans that take any time. There is one request at a time, and at rest no pod waits
// longer than the least gap, and no cluster longer than the scan interval.
func TestPropertyEveryPodIsPlannedForSoon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const scan = 20 * time.Second
		m := planning.New(planning.Config{ScanInterval: scan, OnDemand: true})
		m.GroupsKnown(start)
		var now time.Duration
		var asked, wanted []time.Duration // of the last request; of pods without one
		open := false
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			now += time.Duration(rapid.IntRange(0, 3000).Draw(t, "wait")) * time.Millisecond
			at := start.Add(now)
			if rapid.Bool().Draw(t, "wants") {
				m.Want(at)
				wanted = append(wanted, now)
			}
			if open && rapid.Bool().Draw(t, "planned") {
				m.PlanMade(&autoscaler.Plan{})
				open = false
			}
			if m.Ready(at, false) {
				if open {
					t.Fatalf("at %s a second plan is asked for", now)
				}
				m.Request(turn(now), &autoscaler.Request{})
				asked, wanted, open = append(asked, now), nil, true
			} else if !open && len(asked) > 0 {
				last := asked[len(asked)-1]
				if now-last >= scan || len(wanted) > 0 && now-last >= scan/20 {
					t.Fatalf("at %s no plan is asked for, %s after the last, with pods that wait since %v", now, now-last, wanted)
				}
			}
			for _, broken := range m.Invariants() {
				t.Fatal(broken)
			}
		}
	})
}
