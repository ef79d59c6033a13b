package nodegroups

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
)

// This file is what people are told of a group beside its size: what it was last asked for,
// and what failed last. Nothing is decided by it; it ends with the process.

// Asked is an order that a group was given.
type Asked struct {
	Growth
	At   time.Time
	Pods int // that waited for it; 0 when the group was to reach its minimum
	// Wanted is how many nodes the plan proposed; more than were ordered when a limit or
	// pods that have got a node meanwhile stood in the way.
	Wanted int
	Choice *autoscaler.Choice
}

// Failure is why nodes of a group didn't come.
type Failure struct {
	At    time.Time
	Nodes int // of the order that was refused; 0 when instances failed
	Why   string
}

// LastAsked returns what a group was last asked for, nil for nothing.
func (m *Machine) LastAsked(id string) *Asked {
	if g := m.groups[id]; g != nil {
		return g.asked
	}
	return nil
}

// LastFailure returns what failed last of a group, nil for nothing.
func (m *Machine) LastFailure(id string) *Failure {
	if g := m.groups[id]; g != nil {
		return g.failure
	}
	return nil
}

// withoutNode returns the pods of bins for which no node was ordered; empty for none.
func withoutNode(bins [][]types.UID) map[types.UID]bool {
	out := map[types.UID]bool{}
	for _, bin := range bins {
		for _, uid := range bin {
			out[uid] = true
		}
	}
	return out
}
