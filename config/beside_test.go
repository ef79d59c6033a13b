package config

import (
	"slices"
	"testing"
)

// TestBesideHasAProfileForEachScheduler names one that has a profile and two that haven't.
func TestBesideHasAProfileForEachScheduler(t *testing.T) {
	s := Default()
	var got []string
	for _, p := range s.Beside("mine", "default-scheduler", "other", "mine").Profiles {
		got = append(got, p.SchedulerName)
	}
	if want := []string{"default-scheduler", "mine", "other"}; !slices.Equal(got, want) {
		t.Errorf("got profiles for %q, want %q", got, want)
	}
	if len(s.Profiles) != 1 {
		t.Errorf("the configuration itself has %d profiles now, want 1", len(s.Profiles))
	}
}
