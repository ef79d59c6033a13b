package queue

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"time"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// Waiting are the unschedulable pods of one class. When the class is woken
// they stay where they are, and are tried one at a time: as long as each finds
// a node the next follows, and when one doesn't, the others needn't be asked.
type Waiting struct {
	Class     *engine.Class
	Diagnosis *engine.Diagnosis
	pods      itemHeap
	nominated itemHeap    // those that are nominated to a node
	since     int64       // when it was rejected or woken, in nanoseconds
	held      int         // pods whose victims are being asked to leave
	woken     engine.Help // what for
	led       bool        // a pod is being tried for the woken class
	swept     bool        // by the leftover sweep
}

func (w *Waiting) heapOf(i *Item) *itemHeap {
	if i.Nominated {
		return &w.nominated
	}
	return &w.pods
}

// StillRejected returns why the class was last rejected, if it waits and no
// change since could have helped; nil otherwise.
func (q *Queue) StillRejected(c *engine.Class) *engine.Diagnosis {
	if w := q.waiting[c]; w != nil && w.woken == engine.NoHelp {
		return w.Diagnosis
	}
	return nil
}

// Reject puts a popped pod with its class: it waits for a change that helps.
func (q *Queue) Reject(now time.Time, i *Item, d *engine.Diagnosis) {
	i.Attempts++
	i.Tried = now.UnixNano()
	i.until = now.UnixNano() + int64(q.pause(i.Attempts))
	q.park(now, i, d, true)
}

// Hold keeps a popped pod, which found no node, until Release: its victims are
// being asked to leave.
func (q *Queue) Hold(now time.Time, i *Item, d *engine.Diagnosis) {
	i.Attempts++
	i.Tried = now.UnixNano()
	i.until = now.UnixNano() + int64(q.pause(i.Attempts))
	i.Diagnosis = d
	w := q.enter(now, i, d, true)
	w.held++
	i.place, i.holds = Held, w
	q.held++
}

// Release ends a Hold: the pod is tried again, or waits with its class, without
// having been tried.
func (q *Queue) Release(now time.Time, i *Item, d *engine.Diagnosis, try bool) {
	q.leave(i)
	switch {
	case !try:
		q.park(now, i, d, false)
	case i.until > now.UnixNano():
		q.backOff(i, EventChange)
	default:
		q.activate(i, EventChange)
	}
}

// Retry has a waiting or held pod tried at once.
func (q *Queue) Retry(i *Item) {
	if i.place == Unschedulable || i.place == Held {
		q.leave(i)
		q.activate(i, EventForceActivate)
	}
}

// Again has a pod that found a node tried once more.
func (q *Queue) Again(i *Item) { q.activate(i, EventForceActivate) }

// Abandon ends a Hold after an error.
func (q *Queue) Abandon(now time.Time, i *Item) {
	q.leave(i)
	q.Fail(now, i)
}

// Nominated says whether a pod is nominated to a node.
func (q *Queue) Nominated(i *Item, yes bool) {
	if i.Nominated == yes {
		return
	}
	if i.place != Unschedulable {
		i.Nominated = yes
		return
	}
	w := q.waiting[i.Class]
	heap.Remove(w.heapOf(i), i.at)
	i.Nominated = yes
	heap.Push(w.heapOf(i), i)
}

// park puts a pod with its class, of which d says why it fits nowhere; fresh
// says that it was found out by trying the pod.
func (q *Queue) park(now time.Time, i *Item, d *engine.Diagnosis, fresh bool) {
	i.Diagnosis = d
	w := q.enter(now, i, d, fresh)
	q.came[Incoming{"unschedulable", EventFailure}]++
	i.place = Unschedulable
	heap.Push(w.heapOf(i), i)
}

// enter has the pod's class wait, for the reason d.
func (q *Queue) enter(now time.Time, i *Item, d *engine.Diagnosis, fresh bool) *Waiting {
	w := q.waiting[i.Class]
	if i.heads != w {
		q.follow(i) // what it reads has changed: it spoke for its old class no more
	} else if w != nil {
		w.led = false
	}
	i.heads = nil
	if w == nil {
		w = &Waiting{Class: i.Class, pods: itemHeap{less: q.less, at: tried}, nominated: itemHeap{less: q.less, at: tried}, since: now.UnixNano()}
		q.waiting[i.Class] = w
	}
	if w.Diagnosis == nil || fresh || w.woken != engine.NoHelp && !w.led {
		if w.woken != engine.NoHelp {
			w.since = now.UnixNano()
		}
		// What a nominated pod found out doesn't say why others can't preempt.
		if !d.NoVictims && w.Diagnosis != nil && w.pods.Len() > 0 {
			d.NoVictims, d.Preemption = w.Diagnosis.NoVictims, w.Diagnosis.Preemption
		}
		w.Diagnosis, w.woken, w.swept, w.led = d, engine.NoHelp, false, false
	}
	return w
}

// Placed says that a popped pod found a node: if its class was woken, the next
// of it is tried.
func (q *Queue) Placed(i *Item) { q.follow(i) }

// follow lets the next pod of a woken class take the place of one that left.
func (q *Queue) follow(i *Item) {
	w := i.heads
	i.heads = nil
	if w == nil || w.woken == engine.NoHelp {
		return
	}
	w.led = false
	q.lead(w)
}

// lead puts the first of a woken class's pods where it is tried. One that is
// nominated doesn't look for victims as long as it waits for some.
func (q *Queue) lead(w *Waiting) {
	from := &w.pods
	if n := &w.nominated; w.woken == engine.Fits && n.Len() > 0 && (from.Len() == 0 || q.less(n.items[0], from.items[0])) {
		from = n
	}
	if from.Len() == 0 {
		if w.nominated.Len() > 0 { // they wait on; others may preempt now
			w.woken, w.swept, w.Diagnosis.NoVictims, w.Diagnosis.Preemption = engine.NoHelp, false, false, ""
		}
		q.prune(w)
		return
	}
	i := heap.Pop(from).(*Item)
	i.heads, i.Swept, w.led = w, w.swept, true
	q.try(w.since, i)
}

// Try has a waiting pod tried, though its class isn't woken.
func (q *Queue) Try(now time.Time, i *Item) {
	q.leave(i)
	i.Swept = false
	q.try(now.UnixNano(), i)
}

// try has a pod that was woken tried: at once, or in backoff when that isn't over.
func (q *Queue) try(now int64, i *Item) {
	i.failed = false
	event := EventChange
	if i.Swept {
		event = EventTimeout
	}
	if i.until > now {
		q.backOff(i, event)
	} else {
		q.activate(i, event)
	}
}

// prune forgets a class none of whose pods wait.
func (q *Queue) prune(w *Waiting) {
	if w.pods.Len()+w.nominated.Len()+w.held == 0 && q.waiting[w.Class] == w {
		delete(q.waiting, w.Class)
	}
}

// Wake asks each waiting class once whether it may be let in now, and has the
// pods of those that may tried: at once, or in backoff when that isn't over. Of
// nominated pods it asks besides whether their own node takes them.
func (q *Queue) Wake(now time.Time, mayHelp func(*engine.Class, *engine.Diagnosis) engine.Help, awaited func(*Item) bool) {
	for _, w := range q.sorted() {
		for _, i := range slices.Clone(w.nominated.items) {
			if awaited(i) {
				q.Try(now, i)
			}
		}
		if w.woken != engine.NoHelp {
			continue
		}
		if help := mayHelp(w.Class, w.Diagnosis); help != engine.NoHelp {
			q.wake(w, now.UnixNano(), help, false)
		}
		q.prune(w)
	}
}

func (q *Queue) wake(w *Waiting, now int64, help engine.Help, swept bool) {
	w.woken, w.swept, w.since = help, swept, now
	q.lead(w)
}

// sorted returns the waiting classes in the order in which they were made.
func (q *Queue) sorted() []*Waiting {
	out := make([]*Waiting, 0, len(q.waiting))
	for _, w := range q.waiting {
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b *Waiting) int { // the classes of each profile are numbered
		return cmp.Or(cmp.Compare(a.Class.ID, b.Class.ID), strings.Compare(a.Class.Pod().Object.Spec.SchedulerName, b.Class.Pod().Object.Spec.SchedulerName))
	})
	return out
}

// Waiting returns the waiting classes that weren't woken, in the order in
// which they were made.
func (q *Queue) Waiting() []*Waiting {
	return slices.DeleteFunc(q.sorted(), func(w *Waiting) bool { return w.woken != engine.NoHelp })
}

// Waits tells whether any class waits, in O(1).
func (q *Queue) Waits() bool { return len(q.waiting) > 0 }

// Each calls f for every class of which pods wait, with how many do.
func (q *Queue) Each(f func(w *Waiting, pods int)) {
	for _, w := range q.sorted() {
		f(w, w.pods.Len()+w.nominated.Len()+w.held)
	}
}

// Of returns the waiting pods of a class that aren't nominated, in no particular order that means
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
			q.wake(w, now.UnixNano(), engine.Fits, true)
		}
	}
}

// Reclassify classes those of the pods anew that it concerns, after the rules have
// come to read more of them, or other things of the cluster. Pods of waiting
// classes that it splits are tried again.
func (q *Queue) Reclassify(now time.Time, class func(*cluster.Pod) *engine.Class, concerns func(*cluster.Pod) bool) {
	for _, w := range q.sorted() {
		for _, i := range slices.Concat(w.pods.items, w.nominated.items) {
			if !concerns(i.Pod) {
				continue
			}
			if c := class(i.Pod); c != w.Class {
				q.leave(i)
				i.Class = c
				q.activate(i, EventChange)
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
