package storm

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/berthproject/berth/devcluster/storm/checker"
)

// This file is what people read: a line when a misfortune begins and one when it is over, the
// violations below it, and a summary.

// row is what came of one line of the plan. Binds and restarts are those
// from its beginning to its end.
type row struct {
	step          Step
	misfortune    *misfortune
	binds         int           // while the misfortune was on
	silence       time.Duration // how long nothing was placed
	stuck         bool          // nothing was placed for stuckAfter
	before, after []int64       // each Berth's memory in MiB, 0 for one that is being started
	restarts      int           // of Berths
	violations    []checker.Violation
}

// late reports whether placements resumed later than they have to.
func (r row) late() bool {
	return r.misfortune.resume > 0 && r.silence > r.misfortune.resume
}

// done returns how often something was done twice, and how often something was lost.
func (r row) done() (twice, lost int) {
	for _, v := range r.violations {
		if v.Kind.Twice() {
			twice++
		} else {
			lost++
		}
	}
	return twice, lost
}

const columns = "    %-20s %10s %16s %6s %6s %9s  %s\n"

func header(w io.Writer) {
	fmt.Fprintf(w, columns, "misfortune", "meanwhile", "nothing placed", "twice", "lost", "restarts", "memory of each Berth, MiB")
}

// print writes the row's line and its violations.
func (r row) print(w io.Writer) {
	binds, silence := fmt.Sprint(r.binds, " binds"), fmt.Sprintf("%.1f s", r.silence.Seconds())
	switch {
	case r.misfortune.strike == nil:
		binds, silence = "", ""
	case r.stuck:
		silence += " stuck"
	case r.late():
		silence += " late"
	}
	var memory []string
	for i := range r.before {
		memory = append(memory, fmt.Sprintf("%d→%d", r.before[i], r.after[i]))
	}
	twice, lost := r.done()
	fmt.Fprintf(w, columns, r.misfortune.kind, binds, silence, fmt.Sprint(twice), fmt.Sprint(lost), fmt.Sprint(r.restarts), strings.Join(memory, " "))
	for _, v := range r.violations {
		fmt.Fprintf(w, "    BROKEN %s %s\n", v.At.Format(time.TimeOnly), v)
	}
}

// summary prints all rows by kind of misfortune, and returns ErrBroken, with the seed and the
// lines of the plan, when an invariant broke. Placements that resumed late break the storm with Strict
// only: on a machine that is busy with something else they say little about Berth.
func (r *run) summary() error {
	w := r.o.Out
	fmt.Fprintf(w, "\nsummary, seed %d\n    %-20s %6s %22s %6s %6s\n", r.o.Seed, "misfortune", "times", "longest without binds", "twice", "lost")
	var broken []string
	for _, kind := range append(append([]string{}, r.o.Kinds...), "rest") {
		var times, twice, lost, late int
		var longest time.Duration
		for _, row := range r.rows {
			if row.misfortune.kind != kind {
				continue
			}
			times++
			t, l := row.done()
			twice, lost, longest = twice+t, lost+l, max(longest, row.silence)
			if row.late() {
				late++
			}
			if t+l > 0 || row.stuck || r.o.Strict && row.late() {
				broken = append(broken, row.step.String())
			}
		}
		if times == 0 {
			continue
		}
		note := ""
		if late > 0 {
			note = fmt.Sprintf("  %d late (limit %s)", late, find(kind).resume)
		}
		fmt.Fprintf(w, "    %-20s %6d %20.1f s %6d %6d%s\n", kind, times, longest.Seconds(), twice, lost, note)
	}
	fmt.Fprintf(w, "%d pods were bound\n", r.binds())
	if len(broken) > 0 {
		return fmt.Errorf("%w, seed %d: %s", ErrBroken, r.o.Seed, strings.Join(broken, "; "))
	}
	fmt.Fprintln(w, "nothing was done twice, nothing was lost")
	return nil
}
