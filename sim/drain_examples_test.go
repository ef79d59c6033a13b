package sim_test

import "testing"

// TestNodesAreDrainedSideBySide plays the examples of parallel drains with a tenth of their
// nodes, of which budgets of a tenth of the pods let ten go at a time: to the same end at
// least five times as fast as one after the other.
func TestNodesAreDrainedSideBySide(t *testing.T) {
	tenth := []string{"initial: 1000", "initial: 100", "copies: 100", "copies: 10", "is: 10000", "is: 1000", "max: 400", "max: 40", "max-drain-parallelism=50", "max-drain-parallelism=10"}
	one, ten := playExample(t, "scale-down/drain-1", tenth...), playExample(t, "scale-down/drain-50", tenth...)
	if ten.Nodes.Final > one.Nodes.Final {
		t.Errorf("got %d nodes in the end, want %d as when drained one after the other", ten.Nodes.Final, one.Nodes.Final)
	}
	if ratio := one.Drain.Duration / ten.Drain.Duration; !(ratio >= 5) {
		t.Errorf("drains took %.0f s one after the other and %.0f s side by side: %.1f times as fast, want at least 5", one.Drain.Duration, ten.Drain.Duration, ratio)
	}
}
