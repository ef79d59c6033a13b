package mix_test

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler/mix"
)

// drawInstance draws classes and groups. A group's room is a few nodes, or more than
// could be needed.
func drawInstance(t *rapid.T, maxClasses, maxGroups, maxPods int) (classes []mix.Class, groups []mix.Group) {
	resources := rapid.IntRange(1, 3).Draw(t, "resources")
	for range rapid.IntRange(1, maxGroups).Draw(t, "groups") {
		g := mix.Group{Price: float64(rapid.IntRange(0, 40).Draw(t, "price")) / 4, Room: 1000}
		if rapid.IntRange(0, 3).Draw(t, "limited") == 0 {
			g.Room = rapid.IntRange(0, 3).Draw(t, "room")
		}
		for range resources {
			g.Allocatable = append(g.Allocatable, int64(rapid.IntRange(0, 20).Draw(t, "allocatable")))
		}
		groups = append(groups, g)
	}
	for range rapid.IntRange(1, maxClasses).Draw(t, "classes") {
		c := mix.Class{Pods: rapid.IntRange(0, maxPods).Draw(t, "pods"), PerNode: max(0, rapid.IntRange(-3, 3).Draw(t, "per node"))}
		for range resources {
			c.Request = append(c.Request, int64(max(0, rapid.IntRange(-3, 10).Draw(t, "request"))))
		}
		for j := range groups {
			if rapid.IntRange(0, 3).Draw(t, "takes") > 0 {
				c.Takes = append(c.Takes, j)
			}
		}
		classes = append(classes, c)
	}
	return classes, groups
}

func TestPropertySolutionsKeepToTheRulesAndLeaveNoPodOutInVain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes, groups := drawInstance(t, 8, 6, 40)
		verify(t, classes, groups, mix.Solve(classes, groups))
	})
}

func TestPropertyTheLowerBoundIsTheOptimumOfTheRelaxation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes, groups := drawInstance(t, 4, 4, 30)
		for i, n := range mix.Solve(classes, groups).Held {
			classes[i].Pods = n
		}
		s := mix.Solve(classes, groups)
		optimum, ok := relaxationOptimum(classes, groups)
		if !ok {
			t.Fatal("there is room for all pods, and the reference finds none")
		}
		for i, n := range s.Held {
			if n < classes[i].Pods {
				return // the bound is for fewer pods
			}
		}
		if bound := mix.RelaxationBound(classes, groups); bound > optimum*(1+1e-9) || bound < optimum*0.999-1e-9 || s.LowerBound < bound {
			t.Fatalf("the relaxation's lower bound is %v, want the optimum %v or slightly less; the solution's is %v, want no less", bound, optimum, s.LowerBound)
		}
	})
}

func TestPropertyWhateverTheWorthsNoPurchaseCostsLessThanTheLowerBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes, groups := drawInstance(t, 3, 3, 3)
		s := mix.Solve(classes, groups)
		bound := mix.WorthsBound(classes, groups, s.Held, func() float64 { return rapid.Float64Range(0, 2).Draw(t, "worth") })
		if best := cheapestPurchase(classes, groups, s.Held); bound < 0 || bound > best*(1+1e-9) {
			t.Fatalf("the lower bound is %v, and a purchase costs %v", bound, best)
		}
	})
}

func TestPropertyNoPurchaseCostsLessThanTheLowerBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes, groups := drawInstance(t, 3, 3, 3)
		s := mix.Solve(classes, groups)
		if best := cheapestPurchase(classes, groups, s.Held); s.LowerBound > best*(1+1e-9) {
			t.Fatalf("the lower bound is %v, and a purchase costs %v", s.LowerBound, best)
		} else if s.Price < best*(1-1e-9) {
			t.Fatalf("the price is %v, and no purchase costs less than %v", s.Price, best)
		}
	})
}

// A dual may be of any quality, and all its elements may be 0: the bound is worse then, and
// never false.
func TestPropertyWhateverTheDualNoPurchaseCostsLessThanTheLowerBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes, groups := drawInstance(t, 4, 4, 20)
		s := mix.Solve(classes, groups)
		dual := func() float64 { return float64(min(1, rapid.IntRange(-4, 4).Draw(t, "dual"))) / 4 }
		if bound := mix.LowerBound(classes, groups, s.Held, dual); math.IsNaN(bound) || bound < 0 || bound > s.Price*(1+1e-9) {
			t.Fatalf("the lower bound is %v, and a purchase costs %v", bound, s.Price)
		}
	})
}

func TestPropertyTheOrderOfClassesAndGroupsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes, groups := drawInstance(t, 6, 5, 30)
		a := mix.Solve(classes, groups)
		if again := mix.Solve(classes, groups); !reflect.DeepEqual(a, again) {
			t.Fatalf("two runs give\n%+v\n%+v", a, again)
		}
		to := rapid.Permutation(indexes(len(groups))).Draw(t, "groups' order")
		var otherGroups []mix.Group
		at := make([]int, len(groups))
		for n, j := range to {
			otherGroups = append(otherGroups, groups[j])
			at[j] = n
		}
		var otherClasses []mix.Class
		for _, i := range rapid.Permutation(indexes(len(classes))).Draw(t, "classes' order") {
			c := classes[i]
			takes := make([]bool, len(groups))
			for _, j := range c.Takes {
				takes[at[j]] = true
			}
			c.Takes = nil
			for j, yes := range takes {
				if yes {
					c.Takes = append(c.Takes, j)
				}
			}
			otherClasses = append(otherClasses, c)
		}
		b := mix.Solve(otherClasses, otherGroups)
		for _, g := range groups {
			if g.Room < 1000 {
				return // which pods are left out, and so the bound of the rest, may differ
			}
		}
		// What column generation proves beyond the relaxation depends on which patterns it came upon.
		x, y := mix.RelaxationBound(classes, groups), mix.RelaxationBound(otherClasses, otherGroups)
		if math.Abs(x-y) > 1e-5*x || a.LowerBound < x*(1-1e-5) || b.LowerBound < x*(1-1e-5) {
			t.Fatalf("the relaxation's lower bound is %v, and %v in another order; the solutions' are %v and %v", x, y, a.LowerBound, b.LowerBound)
		}
	})
}

func indexes(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}
