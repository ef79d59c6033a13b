package storm

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestPlanFollowsItsSeed: the same seed gives the same plan, another one another, and a longer
// plan begins as a shorter one does.
func TestPlanFollowsItsSeed(t *testing.T) {
	kinds, err := Kinds("", false)
	if err != nil {
		t.Fatal(err)
	}
	one := Plan(1, 30, kinds)
	if !reflect.DeepEqual(one, Plan(1, 30, kinds)) || !reflect.DeepEqual(one[:20], Plan(1, 20, kinds)) {
		t.Error("the plans of one seed differ")
	}
	if reflect.DeepEqual(one, Plan(2, 30, kinds)) {
		t.Error("the plans of two seeds are the same")
	}
}

// TestPlanHasEachKindOnceARound: as many steps as there are kinds have each of them, and no more than these are
// played when the time is over.
func TestPlanHasEachKindOnceARound(t *testing.T) {
	for _, devices := range []bool{false, true} {
		kinds, err := Kinds("", devices)
		if err != nil {
			t.Fatal(err)
		}
		late, each := Options{Kinds: kinds}, Options{Kinds: kinds, Each: true}
		for seed := range uint64(20) {
			var got []string
			for _, s := range Plan(seed, 2*len(kinds), kinds) {
				if late.mustGoOn(s) {
					t.Errorf("seed %d plays step %d when the time is over", seed, s.Number)
				}
				if each.mustGoOn(s) {
					got = append(got, s.Kind)
				}
			}
			slices.Sort(got)
			if want := slices.Sorted(slices.Values(kinds)); !slices.Equal(got, want) {
				t.Errorf("seed %d has %v, want %v", seed, got, want)
			}
		}
	}
}

func TestKindsRefusesWhatThereIsNot(t *testing.T) {
	if got, err := Kinds("delay,cuts", false); err != nil || !slices.Equal(got, []string{"delay", "cuts"}) {
		t.Errorf("got %v (%v)", got, err)
	}
	if _, err := Kinds("delay,rain", false); err == nil || !strings.Contains(err.Error(), `no misfortune "rain"; there are apiserver-kill, etcd-kill`) {
		t.Errorf("got %v, want an error that names rain and what there is", err)
	}
}

// TestStepSaysWhatItGoesBy has a step of each sort.
func TestStepSaysWhatItGoesBy(t *testing.T) {
	s := Step{Number: 2, Lasts: 3500 * time.Millisecond, All: true, Share: 0.5}
	for kind, want := range map[string]string{
		"leader-kill": "2. leader-kill", "etcd-kill": "2. etcd-kill for 3.5 s", "hang": "2. hang for 3.5 s, 50 % of the connections of all Berths",
	} {
		if s.Kind = kind; s.String() != want {
			t.Errorf("got %q, want %q", s, want)
		}
	}
}
