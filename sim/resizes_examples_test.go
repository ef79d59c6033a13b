package sim_test

import "testing"

// TestPodsMoveForTheirResize plays the examples resizes/moved and resizes/waiting: pods whose resize is deferred move to
// room that is bought, and have none of them waiting in the end; without the flag they stay.
func TestPodsMoveForTheirResize(t *testing.T) {
	moved, waiting := playExample(t, "resizes/moved"), playExample(t, "resizes/waiting")
	if moved.Resizes.Done <= waiting.Resizes.Done || moved.Decisions["HomeKept"] < moved.Resizes.Moved || waiting.Pods.Evicted > 0 {
		t.Errorf("with the flag %+v and %d homes, without %+v and %d evictions; want more that are carried out, a home for each pod that moved, and no eviction",
			moved.Resizes, moved.Decisions["HomeKept"], waiting.Resizes, waiting.Pods.Evicted)
	}
}
