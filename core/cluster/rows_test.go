package cluster_test

import (
	"slices"
	"testing"
)

func TestRows(t *testing.T) {
	s := newState()
	rows := [][]int64{{1, 2}, {}, {1}, {2, 1}, {1, -2}, {1 << 40}, {1 << 32}}
	for i, row := range rows {
		if got := s.Row(row); int(got) != i+1 {
			t.Errorf("%v has number %d, want %d", row, got, i+1)
		}
	}
	for i, row := range rows {
		again := slices.Clone(row)
		if got := s.Row(again); int(got) != i+1 {
			t.Errorf("%v has number %d the second time, want %d", row, got, i+1)
		}
		clear(again) // the caller's
		if got := s.RowOf(int32(i + 1)); !slices.Equal(got, row) {
			t.Errorf("number %d is %v, want %v", i+1, got, row)
		}
	}
}
