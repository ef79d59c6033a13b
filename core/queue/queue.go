package queue

import (
	"container/heap"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
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
	Held // its victims are being asked to leave
)

// Item is a pod in the queue.
type Item struct {
	framework.QueuedPod
	Class     *engine.Class
	Attempts  int
	Diagnosis *engine.Diagnosis // of the last attempt, nil before the first
	Swept     bool              // the last wake-up was the leftover sweep
	// Nominated pods wait for their node as well as with their class.
	Nominated bool
	Tried     int64 // when it was last tried, in nanoseconds; 0 for never
	place     Place
	at        int      // index in its heap in the order of trying
	expires   int      // index in the heap of backoffs that end
	until     int64    // end of the backoff, in nanoseconds
	failures  int      // errors so far
	failed    bool     // backing off from an error, not from a rejection
	heads     *Waiting // the woken class that it is tried for
	holds     *Waiting // the class that it is held with
}

// Until returns when its backoff ends, or has ended.
func (i *Item) Until() time.Time { return time.Unix(0, i.until) }

// String names the place as kube-scheduler's metrics do.
func (p Place) String() string {
	return [...]string{"in flight", "active", "backoff", "unschedulable", "gated", "held"}[p]
}

// Place returns where the item is.
func (i *Item) Place() Place { return i.place }

// Queue holds the pods that have no node. It has no clock: times come in.
type Queue struct {
	cfg     Config
	less    func(a, b *Item) bool
	items   map[types.UID]*Item
	active  itemHeap
	backoff itemHeap // rejected pods whose backoff isn't over, in the order of active
	expiry  itemHeap // all pods in backoff, by its end
	waiting map[*engine.Class]*Waiting
	gated   int
	held    int
	next    uint64
	came    map[Incoming]int
}

// New returns an empty queue in the order of less.
func New(cfg Config, less framework.Less) *Queue {
	q := &Queue{
		cfg:     cfg.withDefaults(),
		less:    func(a, b *Item) bool { return less(&a.QueuedPod, &b.QueuedPod) },
		items:   map[types.UID]*Item{},
		waiting: map[*engine.Class]*Waiting{},
		came:    map[Incoming]int{},
	}
	q.active = itemHeap{less: q.less, at: tried}
	q.backoff = itemHeap{less: q.less, at: tried}
	q.expiry = itemHeap{at: expires, less: func(a, b *Item) bool { return a.until < b.until || a.until == b.until && a.Sequence < b.Sequence }}
	return q
}

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

// Get returns the item of a pod, or nil.
func (q *Queue) Get(uid types.UID) *Item { return q.items[uid] }

// Counts are the numbers of pods by place. Those that are held count as gated,
// as in kube-scheduler.
type Counts struct{ Active, Backoff, Unschedulable, Gated int }

// Counts returns how many pods are where.
func (q *Queue) Counts() Counts {
	c := Counts{Active: q.active.Len(), Backoff: q.expiry.Len(), Gated: q.gated + q.held}
	for _, w := range q.waiting {
		for _, h := range []*itemHeap{&w.pods, &w.nominated} {
			if w.woken == engine.NoHelp {
				c.Unschedulable += h.Len()
				continue
			}
			for _, i := range h.items {
				if i.until > w.since {
					c.Backoff++
				} else {
					c.Active++
				}
			}
		}
	}
	return c
}

// Add queues a pod; a gate keeps it out of active.
func (q *Queue) Add(now time.Time, pod *cluster.Pod, class *engine.Class, gated bool) *Item {
	i := &Item{QueuedPod: framework.QueuedPod{Pod: pod, Queued: now.UnixNano(), Sequence: q.next}, Class: class}
	q.next++
	q.items[pod.UID] = i
	if gated {
		i.place = Gated
		q.gated++
	} else {
		q.activate(i, EventAdd)
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
	q.follow(i)
	delete(q.items, uid)
	return true
}

// Update takes note of how a waiting pod changed. A change that a rule reads,
// or that lifts or adds a gate, has it tried again; others leave it where it is.
func (q *Queue) Update(now time.Time, i *Item, pod *cluster.Pod, class *engine.Class, gated bool) {
	changed := class != i.Class || pod.Priority != i.Pod.Priority
	i.Pod = pod
	switch {
	case i.place == Held: // what becomes of its victims comes first
		i.Class = class
	case gated:
		if i.place != Gated {
			q.leave(i)
			q.follow(i)
			i.Class = class
			i.place = Gated
			q.gated++
		}
	case changed || i.place == Gated:
		q.leave(i)
		q.follow(i)
		i.Class = class
		q.activate(i, EventUpdate)
	}
}

// leave takes the item out of its place; it is in flight then.
func (q *Queue) leave(i *Item) {
	switch i.place {
	case Active:
		heap.Remove(&q.active, i.at)
	case Backoff:
		if !i.failed {
			heap.Remove(&q.backoff, i.at)
		}
		heap.Remove(&q.expiry, i.expires)
	case Gated:
		q.gated--
	case Held:
		q.held--
		i.holds.held--
		q.prune(i.holds)
		i.holds = nil
	case Unschedulable:
		w := q.waiting[i.Class]
		heap.Remove(w.heapOf(i), i.at)
		q.prune(w)
	}
	i.place = InFlight
}

func (q *Queue) activate(i *Item, event string) {
	i.stirred(event)
	q.came[Incoming{"active", event}]++
	i.place, i.failed = Active, false
	heap.Push(&q.active, i)
}

// stirred takes note of what has an item tried: something else than the sweep, or
// the end of the backoff after it.
func (i *Item) stirred(event string) {
	if event != EventTimeout && event != EventBackoffComplete {
		i.Swept = false
	}
}

func (q *Queue) backOff(i *Item, event string) {
	i.stirred(event)
	q.came[Incoming{"backoff", event}]++
	i.place = Backoff
	if !i.failed {
		heap.Push(&q.backoff, i)
	}
	heap.Push(&q.expiry, i)
}

// Pop returns the next pod to try, nil when there is none. When nothing is
// active, a pod whose backoff from a rejection isn't over yet is taken. Of a
// woken class only one pod is there at a time; Placed brings the next.
func (q *Queue) Pop(now time.Time) *Item {
	for q.expiry.Len() > 0 && q.expiry.items[0].until <= now.UnixNano() {
		i := q.expiry.items[0]
		q.leave(i)
		q.activate(i, EventBackoffComplete)
	}
	for k, h := range []*itemHeap{&q.active, &q.backoff} {
		if h.Len() > 0 {
			i := h.items[0]
			q.leave(i)
			if k == 1 {
				q.came[Incoming{"active", EventPopFromBackoff}]++
			}
			return i
		}
	}
	return nil
}

// Fail puts a popped pod into backoff after an error that is not the pod's.
// How long depends on its errors alone: how often a pod is tried without
// success depends on whether others of its class spoke for it.
func (q *Queue) Fail(now time.Time, i *Item) {
	i.Attempts++
	i.Tried = now.UnixNano()
	i.failures++
	i.failed = true
	i.until = now.UnixNano() + int64(q.pause(i.failures))
	q.backOff(i, EventFailure)
}

// pause doubles from InitialBackoff to MaxBackoff.
func (q *Queue) pause(attempts int) time.Duration {
	d := q.cfg.InitialBackoff
	for k := 1; k < attempts && d < q.cfg.MaxBackoff; k++ {
		d *= 2
	}
	return min(d, q.cfg.MaxBackoff)
}

// Rejected returns the pods that were tried and found no node, in the order of
// scheduling: those a larger cluster might help. Nominated pods have a node to
// wait for.
func (q *Queue) Rejected() []*Item {
	var out []*Item
	for _, i := range q.items {
		if i.Diagnosis != nil && !i.Nominated && i.place != Gated && i.place != InFlight {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(a, b *Item) int {
		switch {
		case q.less(a, b):
			return -1
		case q.less(b, a):
			return 1
		}
		return 0
	})
	return out
}

// NextWake returns when a backoff ends or a leftover is due, zero for never.
func (q *Queue) NextWake() time.Time {
	var next int64
	if q.expiry.Len() > 0 {
		next = q.expiry.items[0].until
	}
	for _, w := range q.waiting {
		if w.woken != engine.NoHelp {
			continue
		}
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
	at    func(*Item) *int // where an item keeps its index
}

func tried(i *Item) *int   { return &i.at }
func expires(i *Item) *int { return &i.expires }

func (h *itemHeap) Len() int           { return len(h.items) }
func (h *itemHeap) Less(i, j int) bool { return h.less(h.items[i], h.items[j]) }
func (h *itemHeap) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	*h.at(h.items[i]), *h.at(h.items[j]) = i, j
}
func (h *itemHeap) Push(x any) {
	i := x.(*Item)
	*h.at(i) = len(h.items)
	h.items = append(h.items, i)
}
func (h *itemHeap) Pop() any {
	last := len(h.items) - 1
	i := h.items[last]
	h.items[last] = nil
	h.items = h.items[:last]
	return i
}
