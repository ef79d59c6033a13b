// Package prioritysort orders the pods of the active queue: higher priority first,
// then the one that was queued first (kube-scheduler's PrioritySort).
package prioritysort

import "github.com/berthproject/berth/core/framework"

// Name is the plugin's name in kube-scheduler configuration.
const Name = "PrioritySort"

// Less implements framework.Less. Pods that were queued at the same time go in the
// order in which they came, so that the order is total.
func Less(a, b *framework.QueuedPod) bool {
	if a.Pod.Priority != b.Pod.Priority {
		return a.Pod.Priority > b.Pod.Priority
	}
	if a.Queued != b.Queued {
		return a.Queued < b.Queued
	}
	return a.Sequence < b.Sequence
}
