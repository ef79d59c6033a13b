package framework_test

import (
	"slices"
	"testing"

	"github.com/berthproject/berth/core/framework"
)

// DefaultNormalizeScore of kube-scheduler, over the groups that have candidates.
func TestStaticScoreNormalisesOverCandidates(t *testing.T) {
	for _, c := range []struct {
		name    string
		reverse bool
		raw     []int32 // by group
		nodes   []int32 // candidates, by group
		want    []int64 // of groups with candidates, for weight 1
	}{
		{"in proportion, rounded down", false, []int32{0, 1, 3}, []int32{1, 1, 1}, []int64{0, 33, 100}},
		{"reversed", true, []int32{0, 1, 3}, []int32{1, 1, 1}, []int64{100, 67, 0}},
		{"all alike", false, []int32{5, 5}, []int32{2, 1}, []int64{100, 100}},
		{"all 0", false, []int32{0, 0}, []int32{1, 1}, []int64{0, 0}},
		{"all 0, reversed", true, []int32{0, 0}, []int32{1, 1}, []int64{100, 100}},
		{"the highest has no candidates", false, []int32{1, 2, 8}, []int32{1, 1, 0}, []int64{50, 100, -1}},
		{"only groups without candidates stand out", true, []int32{0, 9}, []int32{1, 0}, []int64{100, -1}},
	} {
		for _, weight := range []int64{1, 3} {
			out := []int64{7, 7, 7}[:len(c.raw)] // Score adds
			framework.StaticScore{Reverse: c.reverse}.Score(&framework.Groups{Nodes: c.nodes, Static: c.raw}, weight, out)
			for i, want := range c.want {
				if got := out[i] - 7; c.nodes[i] != 0 && got != weight*want {
					t.Errorf("%s: weight %d adds %d to group %d, want %d", c.name, weight, got, i, weight*want)
				}
			}
		}
	}
}

func TestStaticScoreShowsTheRawScoreAndFiltersNothing(t *testing.T) {
	g := &framework.Groups{Nodes: []int32{1, 1}, Static: []int32{4, 0}}
	raw := make([]int64, 2)
	framework.StaticScore{}.Raw(g, raw)
	if want := []int64{4, 0}; !slices.Equal(raw, want) {
		t.Errorf("raw scores are %v, want %v", raw, want)
	}
	codes := []framework.Code{framework.Reject, framework.Final}
	framework.StaticScore{}.Filter(g, codes)
	if want := []framework.Code{framework.OK, framework.OK}; !slices.Equal(codes, want) {
		t.Errorf("codes are %v, want %v", codes, want)
	}
	if !(framework.StaticScore{}).NeverFilters() {
		t.Error("a rule that only scores doesn't say that it never filters")
	}
	if key := (framework.StaticScore{}).HostKey(3); key != 0 {
		t.Errorf("the host key of a rule without host facts is %d, want 0", key)
	}
}
