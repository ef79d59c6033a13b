package mix_test

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler/mix"
)

// instance is what Solve is asked.
type instance struct {
	classes []mix.Class
	groups  []mix.Group
}

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

// manyMiB is how much memory a solution may take, all together.
const manyMiB = 128

// TestSolveIsBounded walks over sizes up to those that took minutes and half a gigabyte, and asserts
// how much is counted: not more than column generation may, twice, and some forty of the longest
// steps of a relaxation.
func TestSolveIsBounded(t *testing.T) {
	const most = 5_000_000_000
	for _, x := range []struct{ classes, groups, room int }{
		{1, 500, 1000}, {500, 1, 1000}, {100, 100, 1000}, {400, 150, 1000}, {1000, 300, 1000}, {2000, 400, 1000}, {2000, 500, 1000}, {2000, 500, 1}, {4000, 500, 1000},
	} {
		t.Run(fmt.Sprintf("%d classes, %d groups with room for %d", x.classes, x.groups, x.room), func(t *testing.T) {
			classes, groups := manyShapes(x.classes, x.groups)
			for j := range groups {
				groups[j].Room = x.room
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			s := mix.Solve(classes, groups)
			runtime.ReadMemStats(&after)
			if s.Work > most {
				t.Errorf("it took %d multiplications, want no more than %d", s.Work, most)
			}
			if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > manyMiB {
				t.Errorf("it took %d MiB, want no more than %d", mib, manyMiB)
			}
			if edges := mix.Edges(classes, groups); edges > mix.MaxEdges {
				t.Errorf("there are %d edges, want no more than %d", edges, mix.MaxEdges)
			}
			if least := leastPrice(classes, groups); least < s.Price*0.6 && x.room > 1 {
				t.Errorf("the price is %v, and that of any purchase at least %v", s.Price, least)
			}
		})
	}
}

// TestExchangesAreBounded has tenants with a group each, whose nodes have many resources: half of the
// other groups are cheaper for a node, and none of them takes its pods. To ask them all takes twice
// as much as may be asked.
func TestExchangesAreBounded(t *testing.T) {
	const least, most = 400_000_000, 450_000_000
	x := tenants(2000)
	for j := range x.groups {
		x.groups[j].Allocatable = append(x.groups[j].Allocatable, make([]int64, 200)...)
	}
	for i := range x.classes {
		x.classes[i].Request = append(x.classes[i].Request, make([]int64, 200)...)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := mix.Solve(x.classes, x.groups)
	runtime.ReadMemStats(&after)
	if s.Work < least || s.Work > most {
		t.Errorf("it took %d multiplications, want %d, or some more", s.Work, least)
	}
	if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > manyMiB {
		t.Errorf("it took %d MiB, want no more than %d", mib, manyMiB)
	}
	for i, n := range s.Held {
		if n != x.classes[i].Pods {
			t.Errorf("class %d: %d of %d pods have a node", i, n, x.classes[i].Pods)
		}
	}
}

// tenants are classes with a group each.
func tenants(n int) (x instance) {
	x.classes, x.groups = manyShapes(n, n)
	for i := range x.classes {
		x.classes[i].Takes = []int{i}
	}
	return x
}

// leastPrice returns what any purchase costs at least: a node; and with shares of a node's price for
// each of its three resources, the same in all groups, a pod pays somewhere at least its parts of the
// resources.
func leastPrice(classes []mix.Class, groups []mix.Group) float64 {
	best := slices.MinFunc(groups, func(a, b mix.Group) int { return cmp.Compare(a.Price, b.Price) }).Price
	const steps = 6
	for cpu := range steps + 1 {
		for memory := range steps + 1 - cpu {
			shares := [3]float64{float64(cpu) / steps, float64(memory) / steps, float64(steps-cpu-memory) / steps}
			sum := 0.0
			for i := range classes {
				least := math.Inf(1)
				for _, j := range classes[i].Takes {
					pays := 0.0
					for k, share := range shares {
						pays += share * float64(classes[i].Request[k]) / float64(groups[j].Allocatable[k])
					}
					least = min(least, pays*groups[j].Price)
				}
				sum += least * float64(classes[i].Pods)
			}
			best = max(best, sum)
		}
	}
	return best
}

// TestPropertyWhatIsSolvedCoarselyKeepsToTheRules compares what is solved coarsely with the
// relaxation itself: no pod is left out in vain, no purchase costs less than the true bound, and no
// bound is claimed.
func TestPropertyWhatIsSolvedCoarselyKeepsToTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes, groups := drawInstance(t, 8, 6, 40)
		s := mix.SolveCoarsely(classes, groups)
		verify(t, classes, groups, s)
		if s.LowerBound != 0 {
			t.Fatalf("the lower bound is %v, and nothing proves it", s.LowerBound)
		}
		for i, n := range s.Held {
			classes[i].Pods = n
		}
		if full := mix.Solve(classes, groups); full.LowerBound > s.Price*(1+1e-9) {
			t.Fatalf("the purchase costs %v, and any at least %v", s.Price, full.LowerBound)
		}
	})
}

// TestPropertyAPartLeavesNoPodOutInVain has few edges, so that most groups aren't in the part of the
// problem that is solved, and little room in the groups that are.
func TestPropertyAPartLeavesNoPodOutInVain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes, groups := drawInstance(t, 8, 6, 40)
		for j := range groups {
			groups[j].Room = min(groups[j].Room, rapid.IntRange(0, 3).Draw(t, "room"))
		}
		verify(t, classes, groups, mix.SolvePart(classes, groups))
	})
}

// TestWhatIsBoughtHasWorkOfItsOwn: column generation that has done all the work that it may leaves
// nothing undone of what is bought after it.
func TestWhatIsBoughtHasWorkOfItsOwn(t *testing.T) {
	classes, groups := manyShapes(20, 6)
	want, got := mix.BuyFromMaster(classes, groups, 0), mix.BuyFromMaster(classes, groups, mix.MaxWork)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v is bought, want %v", got, want)
	}
}
