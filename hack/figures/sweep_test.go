package main

import (
	"testing"
	"time"

	"github.com/berthproject/berth/core/lifecycle/launching"
)

// playFor ends a run before its pods end, which takes most of the time.
func playFor(t *testing.T, name string, limit launching.Limit, until time.Duration) oneRun {
	t.Helper()
	r, err := playUnder(t.Context(), name, limit, sweepOptions{Folder: "../../examples/launch-control", Until: until})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestAdaptiveKeepsUpWithTheBestFixedLimit plays each infrastructure under the limit that a
// sweep found to be the best (make figures ONLY=launches), and adaptively with nothing told.
func TestAdaptiveKeepsUpWithTheBestFixedLimit(t *testing.T) {
	for _, i := range infrastructures() {
		t.Run(i.Name, func(t *testing.T) {
			t.Parallel()
			best, adaptive := playFor(t, i.Name, launching.Limit(i.BestFixed), 30*time.Minute), playFor(t, i.Name, launching.Adaptive, 30*time.Minute)
			if adaptive.Seconds > best.Seconds*i.Allowed {
				t.Errorf("adaptive takes %.0f s, the fixed limit %d %.0f s; at most %.2f times as much is allowed", adaptive.Seconds, i.BestFixed, best.Seconds, i.Allowed)
			}
			if i.Name == "night" && adaptive.FailedShare() >= 0.02 {
				t.Errorf("%d of %d launches fail, want less than 2 %%", adaptive.Failed, adaptive.Launched+adaptive.Failed)
			}
		})
	}
}

// TestTheNightIsAsPublished plays the two limits of which something was published: 70 takes
// 22 minutes, and none makes launches fail again and again.
func TestTheNightIsAsPublished(t *testing.T) {
	t.Parallel()
	const published = 22 * 60
	if r := playFor(t, "night", 70, 30*time.Minute); r.Seconds < published*0.85 || r.Seconds > published*1.15 || r.Failed != 0 {
		t.Errorf("the limit 70 takes %.0f s with %d failed launches, want %d s with none, give or take 15 %%", r.Seconds, r.Failed, published)
	}
	if r := playFor(t, "night", 0, time.Hour); r.Seconds < 2*published || r.FailedShare() < 0.3 {
		t.Errorf("no limit takes %.0f s with %.0f %% failed launches, want twice %d s at least and 30 %%", r.Seconds, 100*r.FailedShare(), published)
	}
}
