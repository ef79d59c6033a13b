package comparison

import (
	"testing"
	"time"
)

// TestQuantilesAreAtMostNinePercentTooHigh, and never above the longest.
func TestQuantilesAreAtMostNinePercentTooHigh(t *testing.T) {
	var x times
	if got := x.quantiles(); got != (Quantiles{}) {
		t.Errorf("of nothing: %+v, want zeros", got)
	}
	for i := range 1000 {
		x.add(time.Duration(i+1) * time.Millisecond)
	}
	got := x.quantiles()
	for _, c := range []struct {
		name      string
		got, want time.Duration
	}{{"p50", got.P50, 500 * time.Millisecond}, {"p90", got.P90, 900 * time.Millisecond}, {"p99", got.P99, 990 * time.Millisecond}, {"max", got.Max, time.Second}} {
		if c.got < c.want || c.got > c.want*110/100 || c.got > got.Max {
			t.Errorf("%s is %s, want %s or some more", c.name, c.got, c.want)
		}
	}
	x = times{}
	for _, d := range []time.Duration{-time.Second, 0, time.Microsecond, 300 * time.Hour} {
		x.add(d)
	}
	if got := x.quantiles(); got.Pods != 4 || got.P50 > smallest || got.Max != 300*time.Hour || got.P99 != got.Max {
		t.Errorf("of odd times: %+v", got)
	}
}
