package api_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/berthproject/berth/edge/api"
)

// TestADistanceIsComputedOnceForEachName: it takes as long as the product of both names' lengths.
func TestADistanceIsComputedOnceForEachName(t *testing.T) {
	var names []string
	for i := range 1000 {
		names = append(names, strings.Repeat("n", i%7)+strconv.Itoa(i))
	}
	calls := 0
	near := api.NearestBy(names, func(other string) int { calls++; return api.Distance("n5", other) })
	if calls != len(names) || len(near) != 5 {
		t.Errorf("%d distances for %d names, and %d names; want one for each, and %d", calls, len(names), len(near), 5)
	}
}

// TestNamesLikeAMistypedOne finds what somebody may have meant, the likeliest first.
func TestNamesLikeAMistypedOne(t *testing.T) {
	names := []string{"batch", "spot-a", "spot-b", "gpu-t4", "web", "web-large"}
	for _, x := range []struct{ name, want string }{
		{"spot", "spot-a spot-b"},
		{"SPOT-B", "spot-b spot-a"},
		{"bacth", "batch"},
		{"gpu-a100", "gpu-t4"},
		{"large", "web-large"},
	} {
		if got := strings.Join(api.Nearest(x.name, names), " "); !strings.HasPrefix(got, x.want) {
			t.Errorf("names like %s are %s, want %s first", x.name, got, x.want)
		}
	}
}
