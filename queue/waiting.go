package queue

import (
	"container/heap"
	"slices"
	"time"

	"github.com/berthproject/berth/cluster"
	"github.com/berthproject/berth/engine"
)

// Waiting are the unschedulable pods of one class. When the class is woken
// they stay where they are, and are tried one at a time: as long as each finds
// a node the next follows, and when one doesn't, the others needn't be asked.
type Waiting struct {
	Class     *engine.Class
	Diagnosis *engine.Diagnosis
	pods      itemHeap
	since     int64 // when it was rejected or woken, in nanoseconds
	woken     bool
	swept     bool // by the leftover sweep
}

// StillRejected returns why the class was last rejected, if it waits and no
// change since could have helped; nil otherwise.
func (q *Queue) StillRejected(c *engine.Class) *engine.Diagnosis {
	if w := q.waiting[c]; w != nil && !w.woken {
		return w.Diagnosis
	}
	return nil
}

// Reject puts a popped pod with its class: it waits for a change that helps.
func (q *Queue) Reject(now time.Time, i *Item, d *engine.Diagnosis) {
	i.Attempts++
	i.Diagnosis = d
	i.until = now.UnixNano() + int64(q.pause(i.Attempts))
	w := q.waiting[i.Class]
	if i.heads != w {
		q.follow(i) // what it reads has changed: it spoke for its old class no more
	}
	i.heads = nil
	if w == nil {
		w = &Waiting{Class: i.Class, pods: itemHeap{less: q.less, at: tried}, since: now.UnixNano()}
		q.waiting[i.Class] = w
	}
	if w.woken {
		w.since = now.UnixNano()
	}
	w.Diagnosis, w.woken, w.swept = d, false, false
	q.wait(w, i)
}

func (q *Queue) wait(w *Waiting, i *Item) {
	i.place = Unschedulable
	heap.Push(&w.pods, i)
}

// Placed says that a popped pod found a node: if its class was woken, the next
// of it is tried.
func (q *Queue) Placed(i *Item) { q.follow(i) }

// follow lets the next pod of a woken class take the place of one that left.
func (q *Queue) follow(i *Item) {
	w := i.heads
	i.heads = nil
	if w == nil || !w.woken {
		return
	}
	q.lead(w)
}

// lead puts the first of a woken class's pods where it is tried.
func (q *Queue) lead(w *Waiting) {
	if w.pods.Len() == 0 {
		q.prune(w)
		return
	}
	i := heap.Pop(&w.pods).(*Item)
	i.heads, i.Swept, i.failed = w, w.swept, false
	if i.until > w.since {
		q.backOff(i)
	} else {
		q.activate(i)
	}
}

// prune forgets a class none of whose pods wait.
func (q *Queue) prune(w *Waiting) {
	if w.pods.Len() == 0 && q.waiting[w.Class] == w {
		delete(q.waiting, w.Class)
	}
}

// Wake asks each waiting class once whether it may be let in now, and has the
// pods of those that may tried: at once, or in backoff when that isn't over.
func (q *Queue) Wake(now time.Time, mayHelp func(*engine.Class, *engine.Diagnosis) bool) {
	for _, w := range q.Waiting() {
		if mayHelp(w.Class, w.Diagnosis) {
			q.wake(w, now.UnixNano(), false)
		}
	}
}

func (q *Queue) wake(w *Waiting, now int64, swept bool) {
	w.woken, w.swept, w.since = true, swept, now
	q.lead(w)
}

// Waiting returns the waiting classes that weren't woken, in the order in
// which they were made.
func (q *Queue) Waiting() []*Waiting {
	out := make([]*Waiting, 0, len(q.waiting))
	for _, w := range q.waiting {
		if !w.woken {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b *Waiting) int { return int(a.Class.ID) - int(b.Class.ID) })
	return out
}

// Waits tells whether any class waits, in O(1).
func (q *Queue) Waits() bool { return len(q.waiting) > 0 }

// Of returns the waiting pods of a class, in no particular order that means
// something, but the same one for the same history.
func (q *Queue) Of(c *engine.Class) []*Item {
	if w := q.waiting[c]; w != nil {
		return w.pods.items
	}
	return nil
}

// Sweep wakes the classes that have waited longer than Leftover.
func (q *Queue) Sweep(now time.Time) {
	for _, w := range q.Waiting() {
		if now.UnixNano()-w.since >= int64(q.cfg.Leftover) {
			q.wake(w, now.UnixNano(), true)
		}
	}
}

// Resign classes those of the pods anew that it concerns, after the rules have
// come to read more of them, or other things of the cluster. Pods of waiting
// classes that it splits are tried again.
func (q *Queue) Resign(now time.Time, class func(*cluster.Pod) *engine.Class, concerns func(*cluster.Pod) bool) {
	old := make([]*Waiting, 0, len(q.waiting))
	for _, w := range q.waiting {
		old = append(old, w)
	}
	slices.SortFunc(old, func(a, b *Waiting) int { return int(a.Class.ID) - int(b.Class.ID) })
	for _, w := range old {
		for _, i := range slices.Clone(w.pods.items) {
			if !concerns(i.Pod) {
				continue
			}
			if c := class(i.Pod); c != w.Class {
				q.leave(i)
				i.Class = c
				q.activate(i)
			}
		}
	}
	for _, h := range []*itemHeap{&q.active, &q.expiry} {
		for _, i := range h.items {
			if concerns(i.Pod) {
				i.Class = class(i.Pod)
			}
		}
	}
}
