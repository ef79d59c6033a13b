package api

import (
	"math"
	"testing"
	"time"
	"unsafe"
)

// TestSeriesTakeLessThanAMegabyte, whatever is put there.
func TestSeriesTakeLessThanAMegabyte(t *testing.T) {
	s := NewSeries()
	bytes := func() uintptr {
		return unsafe.Sizeof(*s) + uintptr(cap(s.fine.samples)+cap(s.coarse.samples))*unsafe.Sizeof(sample{})
	}
	for i := range 3 * finePoints {
		s.put(time.Unix(int64(10*i), 0), sample{})
	}
	if got := bytes(); got > 1<<20 {
		t.Errorf("the series have %d bytes, want at most %d", got, 1<<20)
	}
}

// TestSeriesAreOnAGrid: a point for each step, none where nothing was measured, and means on the coarse grid.
func TestSeriesAreOnAGrid(t *testing.T) {
	s := NewSeries()
	if got := s.read(&s.fine, time.Time{}); got.Points != 0 || len(got.Lines) != len(gauges) {
		t.Errorf("without a sample: %d points, %d lines", got.Points, len(got.Lines))
	}
	at := func(seconds int) time.Time { return time.Unix(1_000_000_000+int64(seconds), 0) }
	put := func(seconds int, v float64) { s.put(at(seconds), sample{v, math.NaN()}) }
	put(0, 1)
	put(3, 2) // in the same step: the last counts
	put(40, 6)
	got := s.read(&s.fine, time.Time{})
	want := []float64{2, math.NaN(), math.NaN(), math.NaN(), 6}
	if got.Points != len(want) || !got.From.Equal(at(0)) || got.Step.Duration != 10*time.Second {
		t.Fatalf("got %d points from %s by %s", got.Points, got.From, got.Step.Duration)
	}
	for i, v := range want {
		if p := got.Lines[0].Values[i]; math.IsNaN(v) != (p == nil) || p != nil && *p != v {
			t.Errorf("point %d is %v, want %v", i, p, v)
		}
		if got.Lines[1].Values[i] != nil {
			t.Errorf("point %d of a gauge that isn't known is %v", i, *got.Lines[1].Values[i])
		}
	}
	if got := s.read(&s.fine, at(35)); got.Points != 1 || !got.From.Equal(at(40)) {
		t.Errorf("from 35 s on there are %d points, want that of 40 s", got.Points)
	}
	if got := s.read(&s.fine, at(999)); got.Points != 0 {
		t.Errorf("from the future on there are %d points", got.Points)
	}
	put(300, 10)
	coarse := s.read(&s.coarse, time.Time{})
	if coarse.Points != 2 || *coarse.Lines[0].Values[0] != 3 || *coarse.Lines[0].Values[1] != 10 {
		t.Errorf("the coarse points are %v", coarse.Lines[0].Values)
	}
	// A long gap, and a clock that goes back.
	put(400_000, 7)
	put(10, 9)
	if got := s.read(&s.fine, time.Time{}); got.Points != 1 || *got.Lines[0].Values[0] != 7 {
		t.Errorf("after a gap there are %d points", got.Points)
	}
}
