package lifecycle

import (
	"iter"

	"k8s.io/apimachinery/pkg/types"
)

// Pods finds a machine's own records of the pods that the core is to schedule. The
// core has one record for each such pod, in which each machine has a part P with
// fields that nobody else can reach: so no machine needs a map of its own.
type Pods[P any] interface {
	// Get returns the part of a pod's record, nil for a pod that the API has on a node,
	// that is gone, or that another scheduler is to place.
	Get(types.UID) *P
	// All ranges over all records in the order of UIDs, in O(n log n): for Unsettled and
	// Invariants, not for a Step.
	All() iter.Seq2[types.UID, *P]
}
