package mix_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler/mix"
)

// TestPropertySolveIsBounded draws sizes, more small ones than large ones, and counts the work: it is
// below the same bound for all of them.
func TestPropertySolveIsBounded(t *testing.T) {
	const most = 5_000_000_000
	rapid.Check(t, func(t *rapid.T) {
		large := rapid.IntRange(0, 3).Draw(t, "large") == 0
		size := func(digits int, what string) int {
			if !large {
				digits /= 2
			}
			n := rapid.IntRange(0, digits).Draw(t, "digits of the "+what)
			return 1<<n + rapid.IntRange(0, 1<<n-1).Draw(t, what)
		}
		classes, groups := manyShapes(size(9, "classes"), size(7, "groups"))
		if s := mix.Solve(classes, groups); s.Work > most {
			t.Fatalf("%d classes and %d groups took %d multiplications, want no more than %d", len(classes), len(groups), s.Work, most)
		}
	})
}
