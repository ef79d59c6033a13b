package storm

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/devcluster/storm/checker"
)

// aRow returns a row of a kind in which nothing went wrong.
func aRow(kind string) row {
	return row{step: Step{Number: 3, Kind: kind}, misfortune: find(kind), binds: 12, silence: time.Second, before: []int64{70, 80}, after: []int64{71, 0}, restarts: 1}
}

// summarize returns the error and the text of a storm's summary.
func summarize(strict bool, rows ...row) (string, error) {
	var out strings.Builder
	r := &run{o: Options{Seed: 7, Kinds: []string{"delay", "apiserver-kill"}, Strict: strict, Out: &out}, watch: checker.NewWatcher(nil, checker.Config{}), rows: rows}
	err := r.summary()
	return out.String(), err
}

// TestSummaryIsAnErrorWhenAnInvariantBroke has a storm with one thing wrong in each case.
func TestSummaryIsAnErrorWhenAnInvariantBroke(t *testing.T) {
	twice, lost, stuck, late := aRow("delay"), aRow("delay"), aRow("delay"), aRow("apiserver-kill")
	twice.violations = []checker.Violation{{Kind: checker.BoughtTwice}}
	lost.violations = []checker.Violation{{Kind: checker.Unscheduled}}
	stuck.stuck = true
	late.silence = 6 * time.Second
	for _, c := range []struct {
		name   string
		row    row
		strict bool
		broken bool
	}{
		{"all well", aRow("delay"), true, false}, {"twice", twice, false, true}, {"lost", lost, false, true},
		{"stuck", stuck, false, true}, {"late", late, false, false}, {"late, strictly", late, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, err := summarize(c.strict, aRow("delay"), c.row)
			if errors.Is(err, ErrBroken) != c.broken {
				t.Errorf("the error is %v, want one: %v", err, c.broken)
			}
			if c.broken && (!strings.Contains(err.Error(), "seed 7") || !strings.Contains(err.Error(), c.row.step.String())) {
				t.Errorf("the error %q has neither the seed nor the line of the plan", err)
			}
			if strings.Contains(text, "nothing was lost") == c.broken {
				t.Errorf("the summary is\n%s", text)
			}
		})
	}
}

// TestRowHasItsViolationsBelow prints a row as people read it: without carriage returns.
func TestRowHasItsViolationsBelow(t *testing.T) {
	var out strings.Builder
	r := aRow("apiserver-kill")
	r.silence = 6 * time.Second
	r.violations = []checker.Violation{{Kind: checker.TaintedForEver, Detail: "node n", At: time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)}}
	r.print(&out)
	want := "    apiserver-kill         12 binds       6.0 s late      0      1         1  70→71 80→0\n    BROKEN 10:00:00 a node tainted for ever: node n\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
