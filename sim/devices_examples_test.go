package sim_test

import "testing"

// TestPodsGetDevicesThatComeGoAndAreTainted plays the example with devices: each pod that can be served is, and nothing is
// given away twice or kept.
func TestPodsGetDevicesThatComeGoAndAreTainted(t *testing.T) { playExample(t, "devices/gpus") }
