package soak

import "testing"

// TestGangs is TestSoak with worlds in which nodes are bought for pod groups.
func TestGangs(t *testing.T) { playWorlds(t, GenerateGangs) }
