package mix_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler/mix"
)

// manyShapes returns classes of different requests, each taken by all groups, of different
// shapes and prices.
func manyShapes(classes, groups int) (c []mix.Class, g []mix.Group) {
	var all []int
	for j := range groups {
		cores, gib := int64(4<<(j%5)), int64(2+j%7)
		g = append(g, mix.Group{Price: float64(cores)*0.03 + float64(cores*gib)*0.004 + float64(j%11)*0.01, Allocatable: []int64{cores * 1000, cores * gib * 1024, 110}, Room: 1000})
		all = append(all, j)
	}
	for i := range classes {
		c = append(c, mix.Class{Pods: 3, Request: []int64{int64(100 + i*7%1900), int64(128 + i*37%6000), 1}, Takes: all})
	}
	return c, g
}

// TestSolveIsBounded walks over sizes up to those that took minutes, and asserts how much is
// counted: not more than column generation may, twice, and some steps of a coarse relaxation.
func TestSolveIsBounded(t *testing.T) {
	const most = 2_000_000_000
	for _, x := range []struct{ classes, groups int }{{1, 500}, {500, 1}, {100, 100}, {400, 150}, {1000, 300}, {2000, 400}} {
		t.Run(fmt.Sprintf("%d classes, %d groups", x.classes, x.groups), func(t *testing.T) {
			classes, groups := manyShapes(x.classes, x.groups)
			s := mix.Solve(classes, groups)
			if s.Work > most {
				t.Errorf("it took %d multiplications, want no more than %d", s.Work, most)
			}
			if s.LowerBound < s.Price*0.6 {
				t.Errorf("the price is %v, and the lower bound %v", s.Price, s.LowerBound)
			}
		})
	}
}

// TestPropertyWhatIsSolvedCoarselyKeepsToTheRules compares what is solved coarsely with the
// relaxation itself: no pod is left out in vain, and no purchase costs less than the bound.
func TestPropertyWhatIsSolvedCoarselyKeepsToTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes, groups := drawInstance(t, 8, 6, 40)
		s := mix.SolveCoarsely(classes, groups)
		verify(t, classes, groups, s)
		for i, n := range held(s) {
			classes[i].Pods = n
		}
		if full := mix.Solve(classes, groups); s.LowerBound > full.Price*(1+1e-9) {
			t.Fatalf("the lower bound is %v, and a purchase costs %v", s.LowerBound, full.Price)
		}
	})
}
