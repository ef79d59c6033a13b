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
	"github.com/berthproject/berth/internal/test/testkit"
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
		{at: 6500 * time.Millisecond, what: "its plan comes soon", do: func(time.Time) { m.PlanMade(turn(0), &autoscaler.Plan{Request: 1}) }, state: planning.Idle, wake: 7 * time.Second},
		{at: 7 * time.Second, what: "the next is due after the least gap", state: planning.Due, ready: true, wake: 7 * time.Second},
		{at: 8 * time.Second, what: "it is asked for", do: func(time.Time) {
			m.Request(turn(8*time.Second), &autoscaler.Request{})
			m.PlanMade(turn(8*time.Second), &autoscaler.Plan{Request: 2})
		}, state: planning.Idle, wake: 28 * time.Second},
		{at: 27 * time.Second, what: "nothing new has come: the next scan", state: planning.Idle, wake: 28 * time.Second},
		{at: 28 * time.Second, what: "it is due", leftToTry: true, state: planning.Due, wake: 28 * time.Second},
		{at: 47 * time.Second, what: "something has been left to try for long", leftToTry: true, state: planning.Due, wake: 28 * time.Second},
		{at: 48 * time.Second, what: "after a whole interval it waits no longer", leftToTry: true, state: planning.Due, ready: true, wake: 28 * time.Second},
		{at: 48 * time.Second, what: "it is asked for, and made", do: func(time.Time) {
			m.Request(turn(48*time.Second), &autoscaler.Request{})
			m.PlanMade(turn(48*time.Second), &autoscaler.Plan{Request: 3})
		}, state: planning.Idle, wake: 68 * time.Second},
		{at: 48100 * time.Millisecond, what: "the provider refuses: another is due before the least gap is over", do: m.Retry, state: planning.Due, ready: true, wake: 48100 * time.Millisecond},
		{at: 48200 * time.Millisecond, what: "it is asked for", do: func(time.Time) { m.Request(turn(48200*time.Millisecond), &autoscaler.Request{}) }, state: planning.Requested, wake: -1},
		{at: 48300 * time.Millisecond, what: "the provider refuses again meanwhile", do: m.Retry, state: planning.Requested, wake: -1},
		{at: 48400 * time.Millisecond, what: "the next is due as soon as the plan comes", do: func(time.Time) { m.PlanMade(turn(48400*time.Millisecond), &autoscaler.Plan{Request: 4}) }, state: planning.Due, ready: true, wake: 48300 * time.Millisecond},
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
}

// TestWhichPlansAreRefused has plans come back that nobody has asked for, that are late,
// and that were made at a position which the follower can't have been at. The journal is
// kept from where the follower stood at the last plan that was taken.
func TestWhichPlansAreRefused(t *testing.T) {
	for _, x := range []struct {
		name     string
		plan     autoscaler.Plan
		ok       bool
		state    planning.State
		keepFrom cluster.Seq
	}{
		{"of the request", autoscaler.Plan{Request: 2, At: 3}, true, planning.Idle, 3},
		{"made where the follower stood before", autoscaler.Plan{Request: 2, At: 2}, true, planning.Idle, 2},
		{"of the request before", autoscaler.Plan{Request: 1, At: 3}, false, planning.Requested, 2},
		{"of a request that is to come", autoscaler.Plan{Request: 3, At: 3}, false, planning.Requested, 2},
		{"made beyond the head", autoscaler.Plan{Request: 2, At: 4}, false, planning.Idle, 2},
		{"made before the follower's last position", autoscaler.Plan{Request: 2, At: 1}, false, planning.Idle, 2},
	} {
		m := planning.New(planning.Config{ScanInterval: 20 * time.Second})
		now := turn(0)
		for _, name := range testkit.Names("n", 3) {
			now.State.SetNode(now.State.Schema.ParseNode(testkit.Node(name).Obj(), ""))
		}
		m.GroupsKnown(start)
		if m.PlanMade(now, &autoscaler.Plan{}) {
			t.Errorf("%s: a plan is taken before one is asked for", x.name)
		}
		var first, second autoscaler.Request
		m.Request(now, &first)
		if !m.PlanMade(now, autoscaler.NewPlan(&first, 2)) {
			t.Errorf("%s: the first plan is refused", x.name)
		}
		m.Request(now, &second)
		now.Ready = &step.Ready{}
		ok := m.PlanMade(now, &x.plan)
		if state := m.State(start); ok != x.ok || state != x.state || m.JournalFrom() != x.keepFrom {
			t.Errorf("%s: taken %t, then %s, journal kept from %d; want %t, %s, %d", x.name, ok, state, m.JournalFrom(), x.ok, x.state, x.keepFrom)
		}
		refusals := 1 // of the one that nobody had asked for
		if !x.ok {
			refusals++
		}
		if m.Refused() != refusals || len(now.Ready.Decisions) != refusals-1 {
			t.Errorf("%s: %d plans are refused, and the ledger has %v; want %d, the last in it if it is one", x.name, m.Refused(), now.Ready.Decisions, refusals)
		}
		if ok && m.PlanMade(now, autoscaler.NewPlan(&second, 3)) {
			t.Errorf("%s: the same request is answered twice", x.name)
		}
	}
}

// TestWithoutFrequentLoops plans at each scan only.
func TestWithoutFrequentLoops(t *testing.T) {
	m := planning.New(planning.Config{ScanInterval: 20 * time.Second})
	m.GroupsKnown(start)
	m.Request(turn(0), &autoscaler.Request{})
	m.PlanMade(turn(0), &autoscaler.Plan{Request: 1})
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
		var request *autoscaler.Request
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			now += time.Duration(rapid.IntRange(0, 3000).Draw(t, "wait")) * time.Millisecond
			at := start.Add(now)
			if rapid.Bool().Draw(t, "wants") {
				m.Want(at)
				wanted = append(wanted, now)
			}
			if open && rapid.Bool().Draw(t, "planned") {
				m.PlanMade(turn(now), autoscaler.NewPlan(request, 0))
				open = false
			}
			if m.Ready(at, false) {
				if open {
					t.Fatalf("at %s a second plan is asked for", now)
				}
				request = &autoscaler.Request{}
				m.Request(turn(now), request)
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
