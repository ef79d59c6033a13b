package report_test

import (
	"testing"

	"github.com/berthproject/berth/sim/report"
	"github.com/berthproject/berth/sim/scenario"
)

// TestSumsSayUpToWhenTheyGo: a run goes on after its last change, and the charts with it.
func TestSumsSayUpToWhenTheyGo(t *testing.T) {
	notes := map[string]string{}
	for _, f := range report.Facts(&scenario.Summary{VirtualSeconds: 453, NodeHours: 2, Cost: 1.23}) {
		notes[f.Label] = f.Note
	}
	for _, label := range []string{"node hours", "cost"} {
		if want := "until the last change, after 7m33s"; notes[label] != want {
			t.Errorf("%s has the note %q, want %q", label, notes[label], want)
		}
	}
}
