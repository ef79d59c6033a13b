package comparison

import (
	"testing"
	"time"

	"github.com/berthproject/berth/core/step"
)

// TestAReportSaysWhenItBegan adds three comparisons: the report is since the first and until the last.
func TestAReportSaysWhenItBegan(t *testing.T) {
	x := newTally()
	if !x.since.IsZero() || !x.until.IsZero() {
		t.Errorf("of nothing: since %s until %s, want zero", x.since, x.until)
	}
	began := time.Unix(1000, 0)
	for i := range 3 {
		x.add(&step.Comparison{Time: began.Add(time.Duration(i) * time.Minute), Verdict: step.SameNode})
	}
	if end := began.Add(2 * time.Minute); !x.since.Equal(began) || !x.until.Equal(end) {
		t.Errorf("since %s until %s, want %s and %s", x.since, x.until, began, end)
	}
}
