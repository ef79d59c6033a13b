package sim_test

import "testing"

// TestPodsOfInterruptedNodesHaveHomes plays examples/interruptions: with a warning of two minutes nodes are
// bought, with one of 30 s the room of others is used, and in both no pod waits for a node when it has
// lost its own. Without the marks every pod does.
func TestPodsOfInterruptedNodesHaveHomes(t *testing.T) {
	for _, name := range []string{"warned-2m", "warned-30s"} {
		got := playExample(t, "interruptions/"+name)
		warned := got.Decisions["NodeInterrupted"]
		if warned != 4 || got.Drain.Nodes != warned || got.Drain.Pods < 10 || got.Pods.Lost > 0 {
			t.Errorf("%s: of %d warned nodes, 4 wanted, %d are drained before they are taken, with %d pods, 10 wanted, and %d are lost", name, warned, got.Drain.Nodes, got.Drain.Pods, got.Pods.Lost)
		}
		if kept := got.Decisions["HomeKept"]; got.Drain.Homeless != 0 || kept < got.Drain.Pods {
			t.Errorf("%s: of %d evicted pods %d had a home, and %d waited without one; want all and 0", name, got.Drain.Pods, kept, got.Drain.Homeless)
		}
	}
	ignored := playExample(t, "interruptions/warned-ignored")
	if ignored.Decisions["NodeInterrupted"] != 0 || ignored.Drain.Pods != 0 || ignored.Decisions["HomeKept"] != 0 {
		t.Errorf("without marks: %v, %d pods evicted; want no interruption, and none", ignored.Decisions, ignored.Drain.Pods)
	}
}

// TestPodsOfInterruptedNodesHaveHomesWithDevices plays examples/interruptions/warned-devices: nodes are bought for the
// pods of those that the cloud takes, and nobody else gets the devices.
func TestPodsOfInterruptedNodesHaveHomesWithDevices(t *testing.T) {
	got := playExample(t, "interruptions/warned-devices")
	if got.Decisions["NodeInterrupted"] != 2 || got.Drain.Pods != 4 || got.Drain.Homeless != 0 || got.Pods.Lost > 0 {
		t.Errorf("of 2 warned nodes %d were seen; %d pods were evicted, %d waited without a home, %d were lost; want 4, 0 and 0", got.Decisions["NodeInterrupted"], got.Drain.Pods, got.Drain.Homeless, got.Pods.Lost)
	}
	if kept, lost := got.Decisions["HomeKept"], got.Decisions["HomeLost"]; kept != 4 || lost != 0 {
		t.Errorf("%d homes were kept and %d were lost, want 4 and 0", kept, lost)
	}
}
