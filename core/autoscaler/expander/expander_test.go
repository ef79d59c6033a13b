package expander_test

import (
	"testing"

	"github.com/berthproject/berth/core/autoscaler/expander"
)

// TestChoose has the least-waste strategy choose among groups, which are in the order of
// their names.
func TestChoose(t *testing.T) {
	for _, x := range []struct {
		name    string
		options []expander.Option
		want    int
	}{
		{"no group takes any pod", nil, -1},
		{"one group", []expander.Option{{Group: "a", Wasted: 2}}, 0},
		{"the least waste, whatever it takes", []expander.Option{{Group: "a", Wasted: 0.5, Pods: 9}, {Group: "b", Wasted: 0.4, Pods: 1}, {Group: "c", Wasted: 0.6, Pods: 9}}, 1},
		{"the last", []expander.Option{{Group: "a", Wasted: 0.5}, {Group: "b", Wasted: 0.4}, {Group: "c", Wasted: 0.3}}, 2},
		{"the first of equals", []expander.Option{{Group: "a", Wasted: 0.5}, {Group: "b", Wasted: 0.4}, {Group: "c", Wasted: 0.4}}, 1},
	} {
		if got := expander.Choose(x.options, expander.LeastWaste); got != x.want {
			t.Errorf("%s: option %d is chosen, want %d", x.name, got, x.want)
		}
	}
}

// TestChooseFollowsTheStrategy chooses by another strategy.
func TestChooseFollowsTheStrategy(t *testing.T) {
	most := func(a, b expander.Option) int { return b.Pods - a.Pods }
	if got := expander.Choose([]expander.Option{{Wasted: 0, Pods: 1}, {Wasted: 2, Pods: 3}, {Wasted: 1, Pods: 2}}, most); got != 1 {
		t.Errorf("option %d is chosen, want 1, which takes the most pods", got)
	}
}
