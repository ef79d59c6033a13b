package mix_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/berthproject/berth/core/autoscaler/mix"
)

// TestSolve buys nodes where the cheapest purchase can be seen. Resources are cores and
// GPUs.
func TestSolve(t *testing.T) {
	small := mix.Group{Price: 1, Allocatable: []int64{4, 0}, Room: 100}
	large := mix.Group{Price: 1.9, Allocatable: []int64{8, 0}, Room: 100}
	gpu := mix.Group{Price: 5, Allocatable: []int64{8, 2}, Room: 100}
	limited := func(g mix.Group, room int) mix.Group { g.Room = room; return g }
	plain := func(pods int, cores int64, takes ...int) mix.Class {
		return mix.Class{Pods: pods, Request: []int64{cores, 0}, Takes: takes}
	}
	for _, x := range []struct {
		name    string
		classes []mix.Class
		groups  []mix.Group
		want    string // nodes of group: pods of class on each; …
		bound   float64
	}{
		{"nothing is pending", nil, []mix.Group{small}, "", 0},
		{"there are no groups", []mix.Class{plain(3, 1)}, nil, "", 0},
		{"no group takes the class", []mix.Class{plain(3, 1)}, []mix.Group{small}, "", 0},
		{"no node is large enough", []mix.Class{plain(3, 5, 0)}, []mix.Group{small}, "", 0},
		{"the cheaper per core, full", []mix.Class{plain(16, 1, 0, 1)}, []mix.Group{small, large}, "2 of 1: 8 of 0", 3.8},
		{"the last node is a small one", []mix.Class{plain(12, 1, 0, 1)}, []mix.Group{small, large}, "1 of 0: 4 of 0; 1 of 1: 8 of 0", 2.85},
		{"pods of 3 cores need a small node each, or half of a large one", []mix.Class{plain(6, 3, 0, 1)}, []mix.Group{small, large}, "3 of 1: 2 of 0", 5.7},
		{"alone on its node", []mix.Class{{Pods: 3, Request: []int64{1, 0}, Takes: []int{0, 1}, PerNode: 1}}, []mix.Group{small, large}, "3 of 0: 1 of 0", 3},
		{"pods without need of a GPU go where there are none", []mix.Class{plain(8, 1, 0, 1)}, []mix.Group{gpu, large}, "1 of 1: 8 of 0", 1.9},
		{"or where a node is bought for its GPUs anyway",
			[]mix.Class{plain(6, 1, 0, 1), {Pods: 2, Request: []int64{1, 1}, Takes: []int{0}}}, []mix.Group{gpu, large}, "1 of 0: 6 of 0, 2 of 1", 5},
		{"or where nothing else takes them", []mix.Class{plain(8, 1, 0)}, []mix.Group{gpu, large}, "1 of 0: 8 of 0", 5},
		{"the dearer group where the cheaper one is out of stock", []mix.Class{plain(16, 1, 0, 1)}, []mix.Group{small, limited(large, 1)}, "2 of 0: 4 of 0; 1 of 1: 8 of 0", 3.9},
		{"two groups of one price share the pods", []mix.Class{plain(8, 1, 0, 1)}, []mix.Group{small, small}, "1 of 0: 4 of 0; 1 of 1: 4 of 0", 2},
		{"as far as there is room", []mix.Class{plain(16, 1, 0, 1)}, []mix.Group{limited(small, 1), limited(large, 1)}, "1 of 0: 4 of 0; 1 of 1: 8 of 0", 2.9},
		{"there is no room", []mix.Class{plain(16, 1, 0)}, []mix.Group{limited(small, 0)}, "", 0},
		{"a request of nothing needs a node all the same", []mix.Class{plain(3, 0, 0)}, []mix.Group{small}, "1 of 0: 3 of 0", 1},
		{"a node free of charge", []mix.Class{plain(4, 1, 0, 1)}, []mix.Group{small, {Allocatable: []int64{2, 0}, Room: 1}}, "1 of 0: 2 of 0; 1 of 1: 2 of 0", 0.5},
	} {
		s := mix.Solve(x.classes, x.groups)
		verify(t, x.classes, x.groups, s)
		if got := describe(s); got != x.want {
			t.Errorf("%s: got %q, want %q", x.name, got, x.want)
		}
		if math.Abs(s.LowerBound-x.bound) > 1e-4 {
			t.Errorf("%s: the lower bound is %v, want %v", x.name, s.LowerBound, x.bound)
		}
	}
}

// TestFirstFit fills nodes of 4 cores, first with the classes that take the largest part of
// one, each with what the nodes before it have left.
func TestFirstFit(t *testing.T) {
	pods := func(n int, cores int64, perNode int) mix.Class {
		return mix.Class{Pods: n, Request: []int64{cores}, Takes: []int{0, 1}, PerNode: perNode}
	}
	for _, x := range []struct {
		name    string
		classes []mix.Class
		room    int     // of the first group; the second has more than enough
		assign  [][]int // by class: pods to the first and to the second group
		want    string
	}{
		{"nothing is to be packed", []mix.Class{pods(3, 1, 0)}, 9, [][]int{{0, 0}}, ""},
		{"full nodes, and one that isn't", []mix.Class{pods(10, 1, 0)}, 9, [][]int{{10, 0}}, "1 of 0: 2 of 0; 2 of 0: 4 of 0"},
		{"the largest first", []mix.Class{pods(4, 1, 0), pods(2, 3, 0)}, 9, [][]int{{4, 0}, {2, 0}}, "2 of 0: 1 of 0, 1 of 1; 1 of 0: 2 of 0"},
		{"each group has its pods", []mix.Class{pods(4, 1, 0), pods(2, 3, 0)}, 9, [][]int{{4, 0}, {0, 2}}, "1 of 0: 4 of 0; 2 of 1: 1 of 1"},
		{"a class is in both groups", []mix.Class{pods(8, 1, 0)}, 9, [][]int{{3, 5}}, "1 of 0: 3 of 0; 1 of 1: 1 of 0; 1 of 1: 4 of 0"},
		{"as far as there is room", []mix.Class{pods(10, 1, 0)}, 2, [][]int{{10, 0}}, "2 of 0: 4 of 0"},
		{"one per node", []mix.Class{pods(2, 1, 1), pods(4, 1, 0)}, 9, [][]int{{2, 0}, {4, 0}}, "1 of 0: 1 of 0, 1 of 1; 1 of 0: 1 of 0, 3 of 1"},
	} {
		groups := []mix.Group{{Price: 1, Allocatable: []int64{4}, Room: x.room}, {Price: 1, Allocatable: []int64{4}, Room: 9}}
		if got := describe(mix.Solution{Nodes: mix.FirstFit(x.classes, groups, x.assign)}); got != x.want {
			t.Errorf("%s: got %q, want %q", x.name, got, x.want)
		}
	}
}

func describe(s mix.Solution) string {
	var nodes []string
	for _, b := range s.Nodes {
		var pods []string
		for _, c := range b.Pods {
			pods = append(pods, fmt.Sprintf("%d of %d", c.Pods, c.Class))
		}
		nodes = append(nodes, fmt.Sprintf("%d of %d: %s", b.Nodes, b.Group, strings.Join(pods, ", ")))
	}
	return strings.Join(nodes, "; ")
}
