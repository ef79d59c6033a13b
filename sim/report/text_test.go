package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/sim/report"
	"github.com/berthproject/berth/sim/scenario"
)

// TestTextSaysWhatWasStillToCome has one run that ended before its pods came, and
// one that didn't.
func TestTextSaysWhatWasStillToCome(t *testing.T) {
	for toCome, want := range map[int]string{0: "5: 0 bound, 0 completed, 0 running, 2 pending\n", 13: "2 pending; 13 still to come\n"} {
		s := &scenario.Summary{}
		s.Pods.Total, s.Pods.Pending, s.Pods.ToCome = 5, 2, toCome
		var out bytes.Buffer
		if err := report.Compare(&out, s); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%d to come: got\n%s\nwant …%s…", toCome, out.String(), want)
		}
	}
}

// TestAPlacedPodIsComparedWithTheRunnerUp: its node's score beside that of the best other node, by plugin.
func TestAPlacedPodIsComparedWithTheRunnerUp(t *testing.T) {
	candidate := func(node string, fit, balance int64) explain.Candidate {
		return explain.Candidate{Node: node, Score: fit + balance, Scores: []engine.PluginScore{{Plugin: "NodeResourcesFit", Score: fit}, {Plugin: "Balanced", Score: balance}}}
	}
	for _, x := range []struct {
		outcome    string
		candidates []explain.Candidate
		want       string
	}{
		{"Placed", []explain.Candidate{candidate("n2", 90, 5), candidate("n1", 80, 10), candidate("n3", 1, 5)}, "\nn1 scores 90, the best other node, n2, 95: NodeResourcesFit -10, Balanced +5.\n"},
		{"Placed", []explain.Candidate{candidate("n1", 80, 10)}, "\nNo other node fits.\n"},
		{"Placed", []explain.Candidate{candidate("n2", 80, 10)}, "Its node, n1, is not among them: as the cluster is now, the pod would go to n2."},
		{"Fits", []explain.Candidate{candidate("n1", 90, 5), candidate("n2", 80, 10)}, ""},
	} {
		var out bytes.Buffer
		if err := report.Explanation(&out, &explain.Explanation{Pod: "a/b", Outcome: x.outcome, Node: "n1", Candidates: x.candidates}, "now"); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.Contains(got, x.want) || x.want == "" && strings.Contains(got, "other node") {
			t.Errorf("%s of %v: got\n%s\nwant …%s…", x.outcome, x.candidates, got, x.want)
		}
	}
}

// TestCompareHasAColumnForDifferences, which lines up: how much a number differs, and ≠ for rows of several.
func TestCompareHasAColumnForDifferences(t *testing.T) {
	a, b := &scenario.Summary{Name: "a", Cost: 10, NodeHours: 4}, &scenario.Summary{Name: "b", Cost: 7.5, NodeHours: 4, PeakWriteRate: 9}
	var out bytes.Buffer
	if err := report.Compare(&out, a, b); err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for line := range strings.Lines(out.String()) {
		for _, mark := range []string{"Δ", "-2.5 (-25.0 %)", "≠"} {
			if i := strings.Index(line, mark); i >= 0 {
				at[mark] = i
			}
		}
		if strings.HasPrefix(line, "node hours") && strings.ContainsAny(line, "≠%") {
			t.Errorf("what is equal is marked: %q", line)
		}
	}
	if len(at) != 3 || at["Δ"] != at["≠"] || at["Δ"] != at["-2.5 (-25.0 %)"] {
		t.Errorf("the marks are at %v of\n%s", at, out.String())
	}
}
