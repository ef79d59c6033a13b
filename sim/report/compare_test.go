package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/report"
	"github.com/berthproject/berth/sim/scenario"
)

func outcome(t *testing.T, path string) (*scenario.Run, *scenario.Summary, *sim.Stats) {
	t.Helper()
	runs, err := scenario.Load([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	w, err := sim.New(runs[0], sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return runs[0], s, w.Stats()
}

func TestCompareMarksWhatDiffers(t *testing.T) {
	_, a, _ := outcome(t, "../../examples/night-batch/baked.yaml")
	_, b, _ := outcome(t, "../../examples/night-batch/capped.yaml")
	var out bytes.Buffer
	if err := report.Compare(&out, a, b); err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for _, l := range strings.Split(out.String(), "\n") {
		label, rest, _ := strings.Cut(l, "   ")
		lines[label] = rest
	}
	if l := lines["peak write rate"]; !strings.Contains(l, "6.02 GB/s") || !strings.Contains(l, "14 GB/s") || !strings.HasSuffix(l, "≠") {
		t.Errorf("peak write rate: %q", l)
	}
	if l := lines["budget violations"]; strings.Contains(l, "≠") {
		t.Errorf("what is equal is marked: %q", l)
	}
	out.Reset()
	if err := report.Compare(&out, a); err != nil || strings.Contains(out.String(), "≠") {
		t.Errorf("one summary alone: %v\n%s", err, out.String())
	}
}
