package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestClockRunsEventsByTickThenPhase adds events in some order, and runs them all.
func TestClockRunsEventsByTickThenPhase(t *testing.T) {
	type added struct {
		after time.Duration
		phase tickPhase
		name  string
	}
	for _, c := range []struct {
		name   string
		events []added
		want   string // the events with their times, in milliseconds
	}{
		{"by time", []added{{30 * time.Millisecond, phaseCalls, "b"}, {20 * time.Millisecond, phaseWatch, "a"}}, "20 a, 30 b"},
		{"times are rounded up to a tick", []added{{time.Millisecond, phaseCalls, "a"}, {11 * time.Millisecond, phaseCalls, "b"}, {20 * time.Millisecond, phaseCalls, "c"}}, "10 a, 20 b, 20 c"},
		{"the past is now", []added{{-time.Hour, phaseWatch, "late"}, {0, phaseCalls, "now"}}, "0 now, 0 late"},
		{"within a tick by phase", []added{{0, phaseWatch, "shown"}, {0, phaseWorld, "done"}, {0, phaseCalls, "called"}}, "0 called, 0 done, 0 shown"},
		{"calls in the order in which they were made", []added{{0, phaseCalls, "a"}, {0, phaseCalls, "b"}, {0, phaseCalls, "c"}, {0, phaseCalls, "d"}}, "0 a, 0 b, 0 c, 0 d"},
		{"changes in the order in which they were made", []added{{0, phaseWatch, "a"}, {0, phaseWatch, "b"}, {0, phaseWatch, "c"}, {0, phaseWatch, "d"}}, "0 a, 0 b, 0 c, 0 d"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &clock{seed: 1}
			var ran []string
			for _, e := range c.events {
				w.after(e.after, e.phase, func() { ran = append(ran, fmt.Sprint(w.now.Milliseconds(), " ", e.name)) })
			}
			for w.next(time.Hour) {
			}
			if got := strings.Join(ran, ", "); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestClockRunsWhatEventsAddToTheirTick: an event that is added for now runs before the
// tick is over, also when the events of its phase were through.
func TestClockRunsWhatEventsAddToTheirTick(t *testing.T) {
	w := &clock{seed: 1}
	var ran []string
	note := func(name string) func() { return func() { ran = append(ran, name) } }
	w.after(tick, phaseWorld, func() {
		w.after(0, phaseWatch, note("watch"))
		w.after(0, phaseWorld, note("world"))
		w.after(0, phaseCalls, note("call"))
		w.after(tick, phaseCalls, note("next tick"))
	})
	w.after(2*tick, phaseWorld, note("end"))
	for i, want := range []string{"call world watch", "call world watch next tick end"} {
		if !w.next(time.Hour) {
			t.Fatalf("tick %d has no events", i)
		}
		if got := strings.Join(ran, " "); got != want {
			t.Errorf("after tick %d: got %s, want %s", i, got, want)
		}
	}
	if w.next(time.Hour) {
		t.Error("a third tick has events")
	}
}

// TestClockShufflesTheWorldByItsSeed runs the events of one tick under several seeds:
// equal seeds give equal orders, others don't, and none is that of adding.
func TestClockShufflesTheWorldByItsSeed(t *testing.T) {
	order := func(seed uint64) string {
		w := &clock{seed: seed}
		var ran []string
		for i := range 10 {
			w.after(0, phaseWorld, func() { ran = append(ran, fmt.Sprint(i)) })
		}
		w.next(0)
		return strings.Join(ran, " ")
	}
	orders := map[string]bool{"0 1 2 3 4 5 6 7 8 9": true}
	for seed := range uint64(5) {
		got := order(seed)
		if again := order(seed); again != got {
			t.Errorf("seed %d: got %s and then %s", seed, got, again)
		}
		ran := strings.Fields(got)
		if slices.Sort(ran); strings.Join(ran, " ") != "0 1 2 3 4 5 6 7 8 9" {
			t.Errorf("seed %d: got %s, want each event once", seed, got)
		}
		if orders[got] {
			t.Errorf("seed %d: %s is the order of adding or of another seed", seed, got)
		}
		orders[got] = true
	}
}

// TestClockJumpsAndStops: time jumps to the next tick that has events, and not beyond the
// limit.
func TestClockJumpsAndStops(t *testing.T) {
	w := &clock{}
	ran := 0
	for _, at := range []time.Duration{time.Hour, 3 * time.Hour} {
		w.after(at, phaseWorld, func() { ran++ })
	}
	for _, step := range []struct {
		until time.Duration
		runs  bool
		now   time.Duration
	}{
		{time.Hour - tick, false, 0},
		{time.Hour, true, time.Hour},
		{3*time.Hour - tick, false, time.Hour},
		{4 * time.Hour, true, 3 * time.Hour},
		{99 * time.Hour, false, 3 * time.Hour},
	} {
		before := ran
		if runs := w.next(step.until); runs != step.runs || w.now != step.now || (ran > before) != step.runs {
			t.Errorf("until %s: got %v at %s after %d events, want %v at %s", step.until, runs, w.now, ran-before, step.runs, step.now)
		}
	}
}

// TestClockCountsWhatKeepsARunGoing: events in the background don't.
func TestClockCountsWhatKeepsARunGoing(t *testing.T) {
	w := &clock{}
	w.after(tick, phaseCalls, func() {})
	w.afterInBackground(2*tick, phaseCalls, func() {})
	w.after(3*tick, phaseWatch, func() {})
	for i, want := range []int{2, 1, 1, 0} {
		if w.foreground != want {
			t.Errorf("after %d ticks: got %d events that keep the run going, want %d", i, w.foreground, want)
		}
		w.next(time.Hour)
	}
}
