package lifecycle_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/lifecycle"
)

// TestServerNow says how far this process's clock is taken to be ahead of the API server's.
func TestServerNow(t *testing.T) {
	const created, told, passes = "created", "told", "passes"
	type event struct {
		what string
		ago  time.Duration
	}
	for _, x := range []struct {
		name   string
		events []event
		ahead  time.Duration
	}{
		{"nothing is known", nil, 0},
		{"the newest object says most", []event{{created, time.Hour}, {created, time.Minute}, {created, 2 * time.Hour}}, time.Minute},
		{"clocks differ by seconds", []event{{created, time.Hour}, {created, -2 * time.Second}}, -2 * time.Second},
		{"a creation in the future is a wrong clock's", []event{{created, time.Second}, {created, -time.Hour}}, time.Second},
		{"an answer says more than a quiet cluster", []event{{created, 720 * time.Hour}, {told, time.Second}}, time.Second},
		{"this clock is behind", []event{{told, -3 * time.Hour}, {created, 5 * time.Second}}, -3 * time.Hour},
		{"one server of three is ahead", []event{{told, 0}, {told, -time.Hour}, {told, time.Second}}, 0},
		{"a server was wrong for a while", []event{{told, -time.Hour}, {told, -time.Hour}, {told, -time.Hour}, {told, 0}, {told, 0}, {told, 0}}, 0},
		{"a server was behind for a while", []event{{told, time.Hour}, {told, time.Hour}, {told, time.Second}, {told, time.Second}, {told, time.Second}}, time.Second},
		{"time passes for both", []event{{told, time.Hour}, {passes, time.Hour}}, time.Hour},
	} {
		turn := lifecycle.Turn{Now: time.Unix(1e6, 0)}
		for _, e := range x.events {
			switch e.what {
			case created:
				turn.Created(turn.Now.Add(-e.ago))
			case told:
				turn.ServerTold(turn.Now.Add(-e.ago))
			case passes:
				turn.Now = turn.Now.Add(e.ago)
			}
		}
		if got := turn.Now.Sub(turn.ServerNow()); got != x.ahead {
			t.Errorf("%s: this clock is ahead by %s, want %s", x.name, got, x.ahead)
		}
	}
}

// TestPropertyAMinorityOfAnswersMovesNothing has two of the latest five answers be wrong by up to days,
// in either direction: ages are measured as by the others.
func TestPropertyAMinorityOfAnswersMovesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		turn := lifecycle.Turn{Now: time.Unix(1e6, 0)}
		const right = 17 * time.Minute
		for range rapid.IntRange(0, 9).Draw(t, "earlier answers") {
			turn.ServerTold(turn.Now.Add(-time.Duration(rapid.Int64Range(-1e15, 1e15).Draw(t, "earlier"))))
		}
		answers := []time.Duration{right, right, right}
		for range 2 {
			answers = append(answers, time.Duration(rapid.Int64Range(-1e15, 1e15).Draw(t, "wrong")))
		}
		for _, ago := range rapid.Permutation(answers).Draw(t, "order") {
			turn.ServerTold(turn.Now.Add(-ago))
		}
		if got := turn.Now.Sub(turn.ServerNow()); got != right {
			t.Fatalf("this clock is ahead by %s, want %s", got, right)
		}
	})
}

// TestPropertyCreationsMoveTheClockAMinuteAtMost shows objects that servers have stamped whose clocks
// are off by up to days, in either direction. The API server isn't taken to be more than a minute ahead,
// nor to be behind an object that was created in the past.
func TestPropertyCreationsMoveTheClockAMinuteAtMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		turn := lifecycle.Turn{Now: time.Unix(1e6, 0)}
		var newest time.Time
		for range rapid.IntRange(1, 9).Draw(t, "objects") {
			at := turn.Now.Add(time.Duration(rapid.Int64Range(-1e14, 1e14).Draw(t, "created")))
			if turn.Created(at); !at.After(turn.Now) && at.After(newest) {
				newest = at
			}
			if got := turn.ServerNow(); got.Sub(turn.Now) > time.Minute || got.Before(newest) {
				t.Fatalf("the API server's time is %s, at %s; the newest object is of %s", got, turn.Now, newest)
			}
			turn.Now = turn.Now.Add(time.Duration(rapid.Int64Range(0, 1e11).Draw(t, "later")))
		}
	})
}
