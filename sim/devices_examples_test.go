package sim_test

import "testing"

// TestPodsGetDevicesThatComeGoAndAreTainted plays the example with devices: each pod that can be served is, and nothing is
// given away twice or kept.
func TestPodsGetDevicesThatComeGoAndAreTainted(t *testing.T) { playExample(t, "devices/gpus") }

// TestNodesForDevicesAreBoughtFromZero plays the example in which nodes are bought whose drivers publish devices late: as
// many as the limit of devices lets, none twice, and all go in the end.
func TestNodesForDevicesAreBoughtFromZero(t *testing.T) { playExample(t, "devices/from-zero") }
