package queue

import "github.com/berthproject/berth/core/cluster"

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
type Counts struct {
	Active, Backoff, Unschedulable, Gated int
	// Groups are the numbers of pod groups by stage, and Members those of the pods among the above that
	// wait with their group.
	Groups, Members StageCounts
}

// StageCounts are numbers by stage: active, backoff, unschedulable, gated.
type StageCounts [4]int

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
	for _, g := range q.groups { // in any order, too
		q.countGroup(&c, g)
	}
	return c
}

// countGroup counts the members of a group at the stage of its item, which active and expiry count as
// one pod.
func (q *Queue) countGroup(c *Counts, g *Group) {
	n, at := len(g.members), 0
	switch g.item.stage {
	case Active:
		c.Active += n - 1
	case Backoff:
		c.Backoff, at = c.Backoff+n-1, 1
	case Unschedulable:
		c.Unschedulable, at = c.Unschedulable+n, 2
	case Gated:
		c.Gated, at = c.Gated+n, 3
		n += g.gated
	default:
		return
	}
	c.Groups[at]++
	c.Members[at] += n
}

// Pending returns how many of the pods that are counted were tried and found no node, and how
// many are still to be tried a first time. It costs O(pods).
func (q *Queue) Pending(counted func(*cluster.Pod) bool) (rejected, untried int) {
	for _, item := range q.items { // in any order: they are added up
		switch {
		case item.stage == Gated || item.stage == InFlight || !counted(item.Pod()):
		case item.stage == Grouped && item.in.item.stage == Gated:
		case item.stage == Grouped && item.attempts > 0:
			rejected++
		case item.diagnosis != nil:
			rejected++
		default:
			untried++
		}
	}
	return rejected, untried
}
