package mix_test

import (
	"testing"

	"github.com/berthproject/berth/core/autoscaler/mix"
)

// TestTheLowerBoundKnowsThatPodsAreWhole has pods of two sizes of which a node holds two, whichever they
// are, and a fifth to a third of it is left. The relaxation knows it of each size alone, but has the
// sizes share nodes.
func TestTheLowerBoundKnowsThatPodsAreWhole(t *testing.T) {
	classes := []mix.Class{{Pods: 1000, Request: []int64{35, 1}, Takes: []int{0}}, {Pods: 1000, Request: []int64{40, 1}, Takes: []int{0}}}
	groups := []mix.Group{{Price: 1, Allocatable: []int64{100, 100}, Room: 10_000}}
	s := mix.Solve(classes, groups)
	verify(t, classes, groups, s)
	if s.Price != 1000 || s.LowerBound < 999 {
		t.Errorf("the price is %v and the lower bound %v, want 1000, and no less than 999", s.Price, s.LowerBound)
	}
}

// TestNodesThatOthersHaveRoomForAreGivenUp: two cheap nodes don't hold all pods, and the dear one that is
// needed beside them does.
func TestNodesThatOthersHaveRoomForAreGivenUp(t *testing.T) {
	classes := []mix.Class{{Pods: 10, Request: []int64{1}, Takes: []int{0, 1}}}
	groups := []mix.Group{{Price: 1, Allocatable: []int64{4}, Room: 2}, {Price: 3, Allocatable: []int64{16}, Room: 10}}
	s := mix.Solve(classes, groups)
	verify(t, classes, groups, s)
	if s.Price != 3 {
		t.Errorf("the price is %v with %+v, want 3, that of the dear node", s.Price, s.Nodes)
	}
}
