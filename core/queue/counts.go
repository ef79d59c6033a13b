package queue

// This file holds what the queue counts for metrics.

// Incoming is a reason for which pods came to a queue, under kube-scheduler's
// names; EventChange stands for those of changes of the cluster.
type Incoming struct{ Queue, Event string }

// The events.
const (
	EventAdd             = "UnschedulablePodAdd"
	EventUpdate          = "UnschedulablePodUpdate"
	EventFailure         = "ScheduleAttemptFailure"
	EventBackoffComplete = "BackoffComplete"
	EventPopFromBackoff  = "PopFromBackoffQ"
	EventForceActivate   = "ForceActivate"
	EventTimeout         = "UnschedulableTimeout"
	EventChange          = "ClusterChange"
)

// Incoming returns how many pods came to which queue for what. It is the queue's
// own map: to be read until the next call only.
func (q *Queue) Incoming() map[Incoming]int { return q.came }

// Counts are the numbers of pods by stage. Those that are held count as gated,
// as in kube-scheduler.
type Counts struct{ Active, Backoff, Unschedulable, Gated int }

// Counts returns how many pods are at which stage. The pods of a woken class whose
// turn is yet to come count as active or in backoff, where kube-scheduler has them.
func (q *Queue) Counts() Counts {
	c := Counts{Active: q.active.Len(), Backoff: q.expiry.Len(), Gated: q.gated + q.held}
	for _, w := range q.waiting { // in any order: they are added up
		for _, h := range []*itemHeap{&w.pods, &w.nominated} {
			if w.state == waiting {
				c.Unschedulable += h.Len()
				continue
			}
			for _, item := range h.items {
				if item.until > w.since {
					c.Backoff++
				} else {
					c.Active++
				}
			}
		}
	}
	return c
}
