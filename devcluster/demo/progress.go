package demo

import (
	"context"
	"fmt"
	"io"
	"time"
)

// This file is the table of a demo's progress. A row that equals the one before isn't printed
// again. While nothing changes, the table says why, in Berth's own words; a demo that stands still
// for standstill has failed, however long it took until then.

const (
	rowEvery    = 2 * time.Second
	reasonEvery = 10 * time.Second // how often Berth is asked while nothing changes
	standstill  = 3 * time.Minute
)

// progress is a table with a row every rowEvery.
type progress struct {
	out io.Writer
	// why returns what Berth waits for, in one line.
	why func(context.Context) string

	start, last time.Time     // of the table, and of the last row
	cells       string        // of the last row that was printed
	still       time.Duration // since then, as far as the demo was running
	asked       time.Duration // value of still when Berth was asked last
	reason      string        // what it said then
	rows        int           // that were left out since then
}

func newProgress(out io.Writer, why func(context.Context) string, now time.Time) *progress {
	return &progress{out: out, why: why, start: now, last: now}
}

// due reports whether the next row is due.
func (p *progress) due(now time.Time) bool { return now.Sub(p.last) >= rowEvery }

// row adds a row of cells, without the time. Its error says that nothing has changed for
// standstill; goal says what should have happened.
func (p *progress) row(ctx context.Context, now time.Time, cells, goal string) error {
	// While the whole demo is stopped, as by Ctrl-Z, nothing could change.
	passed := min(now.Sub(p.last), 2*rowEvery)
	p.last = now
	if cells != p.cells {
		if p.rows > 1 { // the times of two rows say as much of one
			fmt.Fprintf(p.out, "%6s │ … unchanged for %.0f s\n", "", p.still.Seconds())
		}
		fmt.Fprintf(p.out, "%5ds │ %s\n", int(now.Sub(p.start).Seconds()), cells)
		p.cells, p.still, p.asked, p.reason, p.rows = cells, 0, 0, "", 0
		return nil
	}
	p.rows++
	p.still += passed
	if p.still-p.asked < reasonEvery {
		return nil
	}
	p.asked = p.still
	if reason := p.why(ctx); reason != p.reason {
		fmt.Fprintf(p.out, "%6s │ … unchanged for %.0f s; Berth: %s\n", "", p.still.Seconds(), reason)
		p.reason, p.rows = reason, 0
	}
	if p.still >= standstill {
		return fmt.Errorf("expected %s, and no number of the table has changed for %s; Berth says: %s", goal, standstill, p.reason)
	}
	return nil
}
