package demo

import (
	"context"
	"strings"
	"testing"
	"time"
)

// played is a table whose Berth says what the test has it say.
type played struct {
	t      *testing.T
	table  *progress
	out    strings.Builder
	now    time.Time
	reason string
	asked  int
}

func newPlayed(t *testing.T) *played {
	p := &played{t: t, now: time.Unix(1000, 0)}
	p.table = newProgress(&p.out, func(context.Context) string { p.asked++; return p.reason }, p.now)
	return p
}

// rows adds equal rows, one every two seconds, and returns the first error.
func (p *played) rows(n int, cells string) error {
	for range n {
		p.now = p.now.Add(rowEvery)
		if err := p.table.row(p.t.Context(), p.now, cells, "all pods to be done"); err != nil {
			return err
		}
	}
	return nil
}

// TestEqualRowsCollapse prints a row once, and for how long it stayed before the next when two rows
// or more were left out.
func TestEqualRowsCollapse(t *testing.T) {
	p := newPlayed(t)
	for _, x := range []struct {
		rows  int
		cells string
	}{{1, "3 pending"}, {2, "2 pending"}, {4, "1 pending"}, {1, "0 pending"}} {
		if err := p.rows(x.rows, x.cells); err != nil {
			t.Fatal(err)
		}
	}
	const want = `    2s │ 3 pending
    4s │ 2 pending
    8s │ 1 pending
       │ … unchanged for 6 s
   16s │ 0 pending
`
	if got := p.out.String(); got != want || p.asked != 0 {
		t.Errorf("Berth was asked %d times, want 0; the table is\n%s\nwant\n%s", p.asked, got, want)
	}
}

// TestAStandstillIsExplained asks Berth every ten seconds, and prints what it says when it says
// something else.
func TestAStandstillIsExplained(t *testing.T) {
	p := newPlayed(t)
	p.reason = "cooldown small-cpu"
	if err := p.rows(11, "1 pending"); err != nil {
		t.Fatal(err)
	}
	p.reason = "removing 3 nodes"
	if err := p.rows(7, "1 pending"); err != nil {
		t.Fatal(err)
	}
	if err := p.rows(1, "0 pending"); err != nil {
		t.Fatal(err)
	}
	const want = `    2s │ 1 pending
       │ … unchanged for 10 s; Berth: cooldown small-cpu
       │ … unchanged for 30 s; Berth: removing 3 nodes
       │ … unchanged for 34 s
   38s │ 0 pending
`
	if got := p.out.String(); got != want || p.asked != 3 {
		t.Errorf("Berth was asked %d times, want 3; the table is\n%s\nwant\n%s", p.asked, got, want)
	}
}

// TestOnlyAStandstillFails: hours with a change every two minutes are progress, three minutes
// without one are not.
func TestOnlyAStandstillFails(t *testing.T) {
	p := newPlayed(t)
	p.reason = "cooldown small-cpu"
	for range 100 {
		for _, cells := range []string{"1 pending", "2 pending"} {
			if err := p.rows(60, cells); err != nil {
				t.Fatalf("after %s: %v", p.now.Sub(time.Unix(1000, 0)), err)
			}
		}
	}
	p.now = p.now.Add(time.Hour) // stopped by Ctrl-Z
	if err := p.rows(1, "2 pending"); err != nil {
		t.Errorf("when it goes on after an hour: %v", err)
	}
	err := p.rows(60, "2 pending")
	const want = "expected all pods to be done, and no number of the table has changed for 3m0s; Berth says: cooldown small-cpu"
	if err == nil || err.Error() != want {
		t.Errorf("after three minutes: %v\nwant %s", err, want)
	}
}
