package door_test

import (
	"testing"

	"github.com/berthproject/berth/core/door"
)

// TestEachThingIsSaidOnce has something go wrong, go on, go wrong otherwise, and be well again.
func TestEachThingIsSaidOnce(t *testing.T) {
	l := door.Complaints{}
	for i, x := range []struct {
		about, why string
		news       bool
	}{
		{"a", "", false}, {"a", "broken", true}, {"a", "broken", false}, {"b", "broken", true},
		{"a", "gone", true}, {"a", "", true}, {"a", "", false}, {"a", "gone", true},
	} {
		if got := l.IsNews(x.about, x.why); got != x.news {
			t.Errorf("%d: %q of %q is news: %t, want %t", i, x.why, x.about, got, x.news)
		}
	}
	if len(l) != 2 {
		t.Errorf("kept is %v, want what is wrong with a and b", l)
	}
}
