package queue

import (
	"container/heap"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/cluster"
	"github.com/berthproject/berth/engine"
	"github.com/berthproject/berth/framework"
)

// Config are the queue's times; the zero value means kube-scheduler's defaults.
type Config struct {
	InitialBackoff time.Duration // default 1 s
	MaxBackoff     time.Duration // default 10 s
	// Leftover is how long a pod may stay unschedulable before it is tried
	// again without a reason (default 5 minutes). It is a safety net: a pod
	// that is found schedulable by it is a wake-up that was missed.
	Leftover time.Duration
}

func (c Config) withDefaults() Config {
	if c.InitialBackoff == 0 {
		c.InitialBackoff = time.Second
	}
	if c.MaxBackoff == 0 {
		c.MaxBackoff = 10 * time.Second
	}
	if c.Leftover == 0 {
		c.Leftover = 5 * time.Minute
	}
	return c
}

// Place is where a pod is in the queue.
type Place uint8

// The places. InFlight is a pod that was popped and not put back or removed.
const (
	InFlight Place = iota
	Active
	Backoff
	Unschedulable
	Gated
)

// Item is a pod in the queue.
type Item struct {
	framework.QueuedPod
	Class     *engine.Class
	Attempts  int
	Diagnosis *engine.Diagnosis // of the last attempt, nil before the first
	Swept     bool              // the last wake-up was the leftover sweep
	place     Place
	at        int   // index in its heap
	until     int64 // end of the backoff, in nanoseconds
	since     int64 // when it came to its place
	failed    bool  // backing off from an error, not from a rejection
}

// Place returns where the item is.
func (i *Item) Place() Place { return i.place }

// Waiting are the unschedulable pods of one class.
type Waiting struct {
	Class     *engine.Class
	Diagnosis *engine.Diagnosis
	items     []*Item
	since     int64
}

// Queue holds the pods that have no node. It has no clock: times come in.
type Queue struct {
	cfg     Config
	items   map[types.UID]*Item
	active  itemHeap
	backoff itemHeap
	waiting map[*engine.Class]*Waiting
	gated   int
	next    uint64
}

// New returns an empty queue in the order of less.
func New(cfg Config, less framework.Less) *Queue {
	return &Queue{
		cfg:     cfg.withDefaults(),
		items:   map[types.UID]*Item{},
		active:  itemHeap{less: func(a, b *Item) bool { return less(&a.QueuedPod, &b.QueuedPod) }},
		backoff: itemHeap{less: func(a, b *Item) bool { return a.until < b.until || a.until == b.until && a.Sequence < b.Sequence }},
		waiting: map[*engine.Class]*Waiting{},
	}
}

// Get returns the item of a pod, or nil.
func (q *Queue) Get(uid types.UID) *Item { return q.items[uid] }

// Counts are the numbers of pods by place.
type Counts struct{ Active, Backoff, Unschedulable, Gated int }

// Counts returns how many pods are where.
func (q *Queue) Counts() Counts {
	c := Counts{Active: q.active.Len(), Backoff: q.backoff.Len(), Gated: q.gated}
	for _, w := range q.waiting {
		c.Unschedulable += len(w.items)
	}
	return c
}

// Add queues a pod; a gate keeps it out of active.
func (q *Queue) Add(now time.Time, pod *cluster.Pod, class *engine.Class, gated bool) *Item {
	i := &Item{QueuedPod: framework.QueuedPod{Pod: pod, Queued: now.UnixNano(), Sequence: q.next}, Class: class}
	q.next++
	q.items[pod.UID] = i
	if gated {
		i.place, i.since = Gated, now.UnixNano()
		q.gated++
	} else {
		q.activate(i, now.UnixNano())
	}
	return i
}

// Remove takes a pod out, wherever it is.
func (q *Queue) Remove(uid types.UID) bool {
	i := q.items[uid]
	if i == nil {
		return false
	}
	q.leave(i)
	delete(q.items, uid)
	return true
}

// Update takes note of how a waiting pod changed. A change that a rule reads,
// or that lifts or adds a gate, has it tried again; others leave it where it is.
func (q *Queue) Update(now time.Time, i *Item, pod *cluster.Pod, class *engine.Class, gated bool) {
	changed := class != i.Class || pod.Priority != i.Pod.Priority
	i.Pod = pod
	switch {
	case gated:
		if i.place != Gated {
			q.leave(i)
			i.Class = class
			i.place, i.since = Gated, now.UnixNano()
			q.gated++
		}
	case changed || i.place == Gated:
		q.leave(i)
		i.Class = class
		q.activate(i, now.UnixNano())
	}
}

// leave takes the item out of its place; it is in flight then.
func (q *Queue) leave(i *Item) {
	switch i.place {
	case Active:
		heap.Remove(&q.active, i.at)
	case Backoff:
		heap.Remove(&q.backoff, i.at)
	case Gated:
		q.gated--
	case Unschedulable:
		w := q.waiting[i.Class]
		w.items = slices.DeleteFunc(w.items, func(x *Item) bool { return x == i })
		if len(w.items) == 0 {
			delete(q.waiting, i.Class)
		}
	}
	i.place = InFlight
}

func (q *Queue) activate(i *Item, now int64) {
	i.place, i.since, i.failed = Active, now, false
	heap.Push(&q.active, i)
}

func (q *Queue) backOff(i *Item, now int64) {
	i.place, i.since = Backoff, now
	heap.Push(&q.backoff, i)
}

// Pop returns the next pod to try, nil when there is none. When nothing is
// active, a pod whose backoff from a rejection isn't over yet is taken.
func (q *Queue) Pop(now time.Time) *Item {
	q.expire(now.UnixNano())
	if q.active.Len() > 0 {
		i := heap.Pop(&q.active).(*Item)
		i.place = InFlight
		return i
	}
	if q.backoff.Len() > 0 && !q.backoff.items[0].failed {
		i := heap.Pop(&q.backoff).(*Item)
		i.place = InFlight
		return i
	}
	return nil
}

func (q *Queue) expire(now int64) {
	for q.backoff.Len() > 0 && q.backoff.items[0].until <= now {
		q.activate(heap.Pop(&q.backoff).(*Item), now)
	}
}

// StillRejected returns why the class was last rejected, if it waits and no
// change since could have helped; nil otherwise.
func (q *Queue) StillRejected(c *engine.Class) *engine.Diagnosis {
	if w := q.waiting[c]; w != nil {
		return w.Diagnosis
	}
	return nil
}

// Reject puts a popped pod with its class: it waits for a change that helps.
func (q *Queue) Reject(now time.Time, i *Item, d *engine.Diagnosis) {
	i.Attempts++
	i.Diagnosis = d
	i.until = now.UnixNano() + int64(q.pause(i.Attempts))
	i.place, i.since = Unschedulable, now.UnixNano()
	w := q.waiting[i.Class]
	if w == nil {
		w = &Waiting{Class: i.Class, Diagnosis: d, since: i.since}
		q.waiting[i.Class] = w
	}
	w.items = append(w.items, i)
}

// Fail puts a popped pod into backoff after an error that is not the pod's.
func (q *Queue) Fail(now time.Time, i *Item) {
	i.Attempts++
	i.failed = true
	i.until = now.UnixNano() + int64(q.pause(i.Attempts))
	q.backOff(i, now.UnixNano())
}

// pause doubles from InitialBackoff to MaxBackoff.
func (q *Queue) pause(attempts int) time.Duration {
	d := q.cfg.InitialBackoff
	for k := 1; k < attempts && d < q.cfg.MaxBackoff; k++ {
		d *= 2
	}
	return min(d, q.cfg.MaxBackoff)
}

// Wake asks each waiting class once whether it may be let in now, and moves
// the pods of those that may: to active, or to backoff when that isn't over.
func (q *Queue) Wake(now time.Time, mayHelp func(*engine.Class, *engine.Diagnosis) bool) {
	for _, w := range q.Waiting() {
		if mayHelp(w.Class, w.Diagnosis) {
			q.wake(w, now.UnixNano(), false)
		}
	}
}

func (q *Queue) wake(w *Waiting, now int64, swept bool) {
	delete(q.waiting, w.Class)
	for _, i := range w.items {
		i.Swept = swept
		if i.until > now {
			q.backOff(i, now)
		} else {
			q.activate(i, now)
		}
	}
}

// Waiting returns the waiting classes in the order in which they were made.
func (q *Queue) Waiting() []*Waiting {
	out := make([]*Waiting, 0, len(q.waiting))
	for _, w := range q.waiting {
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b *Waiting) int { return int(a.Class.ID) - int(b.Class.ID) })
	return out
}

// Sweep wakes the classes that have waited longer than Leftover.
func (q *Queue) Sweep(now time.Time) {
	for _, w := range q.Waiting() {
		if now.UnixNano()-w.since >= int64(q.cfg.Leftover) {
			q.wake(w, now.UnixNano(), true)
		}
	}
}

// Resign classes all pods anew, after the rules have come to read more of
// them. Waiting classes that it splits are tried again.
func (q *Queue) Resign(now time.Time, class func(*cluster.Pod) *engine.Class) {
	for _, w := range q.Waiting() {
		delete(q.waiting, w.Class)
		for _, i := range w.items {
			c := class(i.Pod)
			if c != i.Class {
				i.Class = c
				q.activate(i, now.UnixNano())
				continue
			}
			if q.waiting[c] == nil {
				q.waiting[c] = &Waiting{Class: c, Diagnosis: w.Diagnosis, since: w.since}
			}
			q.waiting[c].items = append(q.waiting[c].items, i)
		}
	}
	for _, h := range []*itemHeap{&q.active, &q.backoff} {
		for _, i := range h.items {
			i.Class = class(i.Pod)
		}
	}
}

// Rejected returns the pods that were tried and found no node, in the order of
// scheduling: those a larger cluster might help.
func (q *Queue) Rejected() []*Item {
	var out []*Item
	for _, i := range q.items {
		if i.Diagnosis != nil && i.place != Gated && i.place != InFlight {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(a, b *Item) int {
		switch {
		case q.active.less(a, b):
			return -1
		case q.active.less(b, a):
			return 1
		}
		return 0
	})
	return out
}

// NextWake returns when a backoff ends or a leftover is due, zero for never.
func (q *Queue) NextWake() time.Time {
	var next int64
	if q.backoff.Len() > 0 {
		next = q.backoff.items[0].until
	}
	for _, w := range q.waiting {
		if due := w.since + int64(q.cfg.Leftover); next == 0 || due < next {
			next = due
		}
	}
	if next == 0 {
		return time.Time{}
	}
	return time.Unix(0, next)
}

// Uses tells whether a pod of the class is in the queue.
func (q *Queue) Uses() map[*engine.Class]bool {
	out := map[*engine.Class]bool{}
	for _, i := range q.items {
		out[i.Class] = true
	}
	return out
}

// itemHeap is a heap that knows where its items are.
type itemHeap struct {
	items []*Item
	less  func(a, b *Item) bool
}

func (h *itemHeap) Len() int           { return len(h.items) }
func (h *itemHeap) Less(i, j int) bool { return h.less(h.items[i], h.items[j]) }
func (h *itemHeap) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.items[i].at, h.items[j].at = i, j
}
func (h *itemHeap) Push(x any) {
	i := x.(*Item)
	i.at = len(h.items)
	h.items = append(h.items, i)
}
func (h *itemHeap) Pop() any {
	last := len(h.items) - 1
	i := h.items[last]
	h.items[last] = nil
	h.items = h.items[:last]
	return i
}
