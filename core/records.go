package core

import (
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// records shows a lifecycle machine its own part of the core's records of pods; it
// implements lifecycle.Pods.
type records[P any] struct {
	pods map[types.UID]*pod // the core's, which it changes
	part func(*pod) *P      // the machine's part of a record
}

// Get implements lifecycle.Pods.
func (l records[P]) Get(uid types.UID) *P {
	if p := l.pods[uid]; p != nil {
		return l.part(p)
	}
	return nil
}

// All implements lifecycle.Pods.
func (l records[P]) All() iter.Seq2[types.UID, *P] {
	return func(yield func(types.UID, *P) bool) {
		for _, uid := range slices.Sorted(maps.Keys(l.pods)) {
			if !yield(uid, l.part(l.pods[uid])) {
				return
			}
		}
	}
}
