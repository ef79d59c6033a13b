package cluster_test

import (
	"slices"
	"testing"
)

func TestRows(t *testing.T) {
	s := newState()
	table := s.Rows("of some rule")
	rows := [][]int64{{1, 2}, {}, {1}, {2, 1}, {1, -2}, {1 << 40}, {1 << 32}}
	for i, row := range rows {
		if got := table.Number(row); int(got) != i+1 {
			t.Errorf("%v has number %d, want %d", row, got, i+1)
		}
	}
	for i, row := range rows {
		again := slices.Clone(row)
		if got := table.Number(again); int(got) != i+1 {
			t.Errorf("%v has number %d the second time, want %d", row, got, i+1)
		}
		clear(again) // the caller's
		if got := table.At(int32(i + 1)); !slices.Equal(got, row) {
			t.Errorf("number %d is %v, want %v", i+1, got, row)
		}
	}
}

// TestRowsAreKeptAsLongAsTheyAreUsed has two rules use one table, and another its own.
func TestRowsAreKeptAsLongAsTheyAreUsed(t *testing.T) {
	s := newState()
	one, other := s.Rows("shared"), s.Rows("own")
	one.Number([]int64{7})
	if got := other.Number([]int64{8}); got != 1 {
		t.Errorf("the first row of the other table has number %d, want 1", got)
	}
	again := s.Rows("shared")
	s.DropRows(one)
	if got := s.Rows("shared"); got != again || got.At(1)[0] != 7 {
		t.Error("a table that is used has been dropped")
	}
	s.DropRows(again)
	s.DropRows(again)
	if got := s.Rows("shared").Number([]int64{9}); got != 1 {
		t.Errorf("a table that nobody used has rows: the next has number %d, want 1", got)
	}
}
