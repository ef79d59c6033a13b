package framework

// ByPriority implements Less as kube-scheduler's PrioritySort does, its only QueueSort plugin: higher
// priority first, then the one that was queued first. Pods that were queued at the same time go in the
// order in which they came, so that the order is total.
func ByPriority(a, b *QueuedPod) bool {
	if a.Pod.Priority != b.Pod.Priority {
		return a.Pod.Priority > b.Pod.Priority
	}
	if a.Queued != b.Queued {
		return a.Queued < b.Queued
	}
	return a.Sequence < b.Sequence
}
