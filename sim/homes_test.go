package sim_test

import (
	"testing"

	"github.com/berthproject/berth/sim/scenario"
)

// TestKeptHomesSpareEvictedPodsTheWait plays the scenarios homes-kept and homes-not-kept of
// examples/scale-down, in which a batch comes while seven nodes are drained: with room kept
// for them no evicted pod's replacement waits, and without several do, for minutes.
func TestKeptHomesSpareEvictedPodsTheWait(t *testing.T) {
	got := map[string]*scenario.Summary{}
	for _, name := range []string{"homes-kept", "homes-not-kept"} {
		got[name] = playExample(t, "scale-down/"+name)
	}
	kept, lost := got["homes-kept"].Drain, got["homes-not-kept"].Drain
	if kept.Pods < 10 || kept.Homeless != 0 || kept.GapSeconds > 5*float64(kept.Pods) {
		t.Errorf("with room kept %d pods are evicted, %d of them homeless, and nobody runs in their place for %.0f s; want 10, 0 and at most 5 s for each", kept.Pods, kept.Homeless, kept.GapSeconds)
	}
	if lost.Homeless < 5 || lost.GapSeconds < 10*kept.GapSeconds {
		t.Errorf("without, %d are homeless, and nobody runs for %.0f s; want 5, and 10 times as long as %.0f s", lost.Homeless, lost.GapSeconds, kept.GapSeconds)
	}
}
