package sim_test

import "testing"

// TestPodGroupsArePlacedWholeOrNotAtAll plays the racks of docs/pod-groups.md.
func TestPodGroupsArePlacedWholeOrNotAtAll(t *testing.T) { playExample(t, "pod-groups/racks") }
