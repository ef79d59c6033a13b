package engine

import (
	"math"
	"testing"

	"github.com/berthproject/berth/core/cluster"
)

func TestStampsAreASetThatEmptiesAtOnce(t *testing.T) {
	var s stamps
	s.next(2)
	if s.has(1) {
		t.Error("a new set holds node 1")
	}
	if !s.set(1) || s.set(1) || !s.has(1) || s.has(0) {
		t.Error("set says whether the node was not in the set before")
	}
	s.next(3)
	if s.has(1) || s.has(2) {
		t.Error("the next set isn't empty")
	}
}

// After 2^32 sets the serial is back where old stamps are.
func TestStampsOutliveTheirSerial(t *testing.T) {
	s := stamps{at: []uint32{0, 1, math.MaxUint32}, serial: math.MaxUint32}
	s.next(3)
	for i := range s.at {
		if s.has(cluster.NodeIndex(i)) {
			t.Errorf("a stamp of an earlier round counts for node %d", i)
		}
	}
	if !s.set(1) || s.set(1) {
		t.Error("after it the set holds nothing, and then the node that is set")
	}
}
