package soak

import (
	"testing"

	"github.com/berthproject/berth/sim"
)

// TestDevicesBought is TestSoak with worlds in which nodes are bought for devices and removed again.
func TestDevicesBought(t *testing.T) { playWorlds(t, GenerateBoughtDevices) }

// TestBoughtWorldsHaveWhatTheyAreFor counts what happens in worlds whose nodes are bought for devices.
func TestBoughtWorldsHaveWhatTheyAreFor(t *testing.T) {
	bought, removed, edited, given := 0, 0, 0, 0
	for seed := range uint64(40) {
		out, err := Play(t.Context(), GenerateBoughtDevices(seed), sim.Options{})
		if err != nil || len(out.Problems) > 0 {
			t.Errorf("seed %d: %v %s", seed, err, list(out.Problems))
			continue
		}
		bought += out.Summary.Nodes.Launched
		removed += out.Summary.Nodes.Removed
		edited += out.Devices.Edited
		given += out.Devices.Given
	}
	if bought < 40 || removed < 40 || edited < 10 || given < 200 {
		t.Errorf("%d nodes were bought and %d removed, %d claims edited and %d given devices: too few of some", bought, removed, edited, given)
	}
}
