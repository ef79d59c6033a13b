package record

import (
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/lifecycle"
)

// Part shows a lifecycle machine its own part of all records; it implements lifecycle.Pods.
type Part[P any] struct {
	pods Pods // the core's, which it changes
	part func(*Pod) *P
}

var _ lifecycle.Pods[struct{}] = Part[struct{}]{}

// PartOf returns the part of each record that of returns.
func PartOf[P any](pods Pods, of func(*Pod) *P) Part[P] { return Part[P]{pods, of} }

// Get implements lifecycle.Pods.
func (l Part[P]) Get(uid types.UID) *P {
	if p := l.pods[uid]; p != nil {
		return l.part(p)
	}
	return nil
}

// All implements lifecycle.Pods.
func (l Part[P]) All() iter.Seq2[types.UID, *P] {
	return func(yield func(types.UID, *P) bool) {
		for _, uid := range slices.Sorted(maps.Keys(l.pods)) {
			if !yield(uid, l.part(l.pods[uid])) {
				return
			}
		}
	}
}
