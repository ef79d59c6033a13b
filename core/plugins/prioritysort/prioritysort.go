// Package prioritysort orders pods by priority, then by the time they were
// first queued.
package prioritysort

import "github.com/berthproject/berth/core/framework"

// Name is the plugin's name in kube-scheduler configuration.
const Name = "PrioritySort"

// Less implements framework.Less. Pods queued at the same time go in the order
// in which they came.
func Less(a, b *framework.QueuedPod) bool {
	if a.Pod.Priority != b.Pod.Priority {
		return a.Pod.Priority > b.Pod.Priority
	}
	if a.Queued != b.Queued {
		return a.Queued < b.Queued
	}
	return a.Sequence < b.Sequence
}
