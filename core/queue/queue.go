package queue

// This file holds the queue and the stages of its pods; waiting.go holds the classes
// with which unschedulable pods wait, and decides what wakes them.
//
//	stage          what takes a pod out of it, and to where
//	active         Pop: in flight
//	backoff        the backoff ends: active. Pop, when nothing is active: in flight
//	unschedulable  its class is woken (Wake, Sweep) and its turn comes, or it is
//	               called itself (Wake, WakePod): active, or backoff when that isn't
//	               over. Activate: active
//	gated          Update or Regate without a gate: active
//	held           ReleaseToTry: active or backoff. ReleaseToWait: unschedulable.
//	               Activate: active. Fail: backoff
//	grouped        its pod group is decided on (groups.go): in flight
//	in flight      Reject: unschedulable. Hold: held. Fail: backoff. Requeue: active
//
// Update and Reclassify move a pod whose class has changed to active, Update and Regate
// move one that has got a gate to gated, and Remove takes it out, whatever its stage.
//
// What must be true of all this is in invariants.go.

import (
	"container/heap"
	"sort"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
)

// Queue holds the pods that have no node.
type Queue struct {
	cfg     Config
	less    func(a, b *Item) bool
	items   map[types.UID]*Item
	active  itemHeap
	backoff itemHeap // of the pods in backoff those that were rejected, in the order of active
	expiry  itemHeap // all pods in backoff, by its end
	waiting map[*engine.Class]*WaitingClass
	ordered []*WaitingClass // the same, by precedes
	waits   waitHeap        // since when each of those waits that do, and what is over
	gated   int
	held    int
	// groups are the pod groups of which members wait (groups.go), and changed those that
	// ChangedGroups is to return. Those that are unschedulable are in unplaced, by when they were tried;
	// groupClasses counts what they wait for.
	groups       map[cluster.PodGroupKey]*Group
	changed      map[cluster.PodGroupKey]bool
	unplaced     itemHeap
	groupClasses map[*engine.Class]int
	next         uint64 // the next pod's sequence number
	signing      uint64 // the version by which pods are classified
	// rejected is what Rejected returned last, and listing how often it was called.
	rejected []*Item
	listing  uint64
	came     map[Incoming]int
}

// New returns an empty queue that tries pods in the order of less.
func New(cfg Config, less framework.Less) *Queue {
	q := &Queue{
		cfg:     cfg,
		less:    func(a, b *Item) bool { return less(&a.queued, &b.queued) },
		items:   map[types.UID]*Item{},
		waiting: map[*engine.Class]*WaitingClass{},
		came:    map[Incoming]int{},
		groups:  map[cluster.PodGroupKey]*Group{}, changed: map[cluster.PodGroupKey]bool{}, groupClasses: map[*engine.Class]int{},
	}
	q.active = q.newHeap()
	q.backoff = q.newHeap()
	q.expiry = itemHeap{index: expiryIndex, less: func(a, b *Item) bool {
		return a.until < b.until || a.until == b.until && a.Sequence() < b.Sequence()
	}}
	q.unplaced = itemHeap{index: expiryIndex, less: func(a, b *Item) bool {
		return a.tried < b.tried || a.tried == b.tried && a.Sequence() < b.Sequence()
	}}
	return q
}

// newHeap returns an empty heap in the order of trying.
func (q *Queue) newHeap() itemHeap { return itemHeap{less: q.less, index: tryIndex} }

// Get returns the item of a pod, or nil.
func (q *Queue) Get(uid types.UID) *Item { return q.items[uid] }

// Add queues a pod that isn't in the queue. gate is why a plugin keeps it out of
// active, nil when none does. A member of a pod group waits with its group.
func (q *Queue) Add(now time.Time, pod *cluster.Pod, class *engine.Class, gate *framework.Reason) *Item {
	item := &Item{queued: framework.QueuedPod{Pod: pod, Queued: now.UnixNano(), Sequence: q.next}}
	q.classify(item, class)
	q.next++
	q.items[pod.UID] = item
	if gate != nil {
		q.gate(item)
	} else {
		q.queue(item, EventAdd)
	}
	return item
}

// Remove takes a pod out, whatever its stage, and reports whether it was there.
func (q *Queue) Remove(uid types.UID) bool {
	item := q.items[uid]
	if item == nil {
		return false
	}
	q.takeOut(item)
	q.endProbe(item)
	delete(q.items, uid)
	return true
}

// Update records how a pod changed, and what its class and gate are now. A
// change that a rule reads, or that lifts or adds a gate, requeues it; others
// leave it at its stage. A held pod stays held: what becomes of its victims comes
// first.
func (q *Queue) Update(item *Item, pod *cluster.Pod, class *engine.Class, gate *framework.Reason) {
	changed := class != item.class || pod.Priority != item.Pod().Priority
	item.queued.Pod = pod
	switch {
	case item.stage == Held || gate != nil && item.stage == Gated:
		q.classify(item, class)
	case gate != nil:
		q.takeOut(item)
		q.endProbe(item)
		q.classify(item, class)
		q.gate(item)
	case changed || item.stage == Gated:
		q.takeOut(item)
		q.endProbe(item)
		q.classify(item, class)
		q.queue(item, EventUpdate)
	default:
		q.classify(item, class)
	}
}

// SetPod records how a pod in flight changed, where that is no reason to try
// it again.
func (q *Queue) SetPod(item *Item, pod *cluster.Pod) { item.queued.Pod, item.unsigned = pod, true }

// SetClass records the class of a pod that is in flight, held or grouped, after it was
// signed again.
func (q *Queue) SetClass(item *Item, class *engine.Class) {
	if item.stage != InFlight && item.stage != Held && item.stage != Grouped {
		panic("queue: SetClass of a pod that is " + item.stage.String())
	}
	q.classify(item, class)
}

// classify gives a pod the class that it is signed with now.
func (q *Queue) classify(item *Item, class *engine.Class) {
	item.class, item.signed, item.unsigned = class, q.signing, false
}

// SignedBy says by which version of the cluster (State.SignatureInputs) pods are classified from
// now on.
func (q *Queue) SignedBy(version uint64) { q.signing = version }

// Signed reports whether a pod was classified, as it is now, by that version.
func (q *Queue) Signed(item *Item) bool { return !item.unsigned && item.signed == q.signing }

// SetNominated says whether a pod waits for a node of its own: it is nominated to one, or a
// place on one that is coming is kept for it.
func (q *Queue) SetNominated(item *Item, nominated bool) {
	if item.nominated == nominated {
		return
	}
	if item.stage != Unschedulable {
		item.nominated = nominated
		return
	}
	w := q.waiting[item.class]
	heap.Remove(w.heapOf(item), item.at)
	item.nominated = nominated
	heap.Push(w.heapOf(item), item)
}

// SetHelped says that a change since the leftover sweep would have woken a swept
// pod in flight: if it finds a node now, no wake-up was missed.
func (q *Queue) SetHelped(item *Item) { item.swept = false }

// Pop returns the next pod to try, nil when there is none. When nothing is active,
// a pod whose backoff from a rejection isn't over yet is taken, as kube-scheduler
// does. Of a woken class only the probe is there; Placed brings the next.
func (q *Queue) Pop(now time.Time) *Item {
	for q.expiry.Len() > 0 && q.expiry.items[0].until <= now.UnixNano() {
		item := q.expiry.items[0]
		q.takeOut(item)
		q.activate(item, EventBackoffComplete)
	}
	var item *Item
	switch {
	case q.active.Len() > 0:
		item = q.active.items[0]
	case q.backoff.Len() > 0:
		item = q.backoff.items[0]
		q.came[Incoming{"active", EventPopFromBackoff}]++
	default:
		return nil
	}
	q.takeOut(item)
	return item
}

// Placed says that a pod in flight found a node. If it was the probe of a woken
// class, the next pod of the class is tried.
func (q *Queue) Placed(item *Item) { q.endProbe(item) }

// Fail puts a pod in flight or held into backoff after an error that is not the
// pod's. How long depends on its errors alone: how often a pod is rejected depends
// on whether others of its class were tried in its stead.
func (q *Queue) Fail(now time.Time, item *Item) {
	q.takeOut(item)
	item.attempts++
	item.tried = now.UnixNano()
	item.failures++
	if q.keyOf(item.Pod()) != nil {
		q.failMember(now, item)
		return
	}
	item.afterError = true
	item.until = now.UnixNano() + int64(q.cfg.errorBackoff(item.failures))
	q.backOff(item, EventFailure)
}

// Requeue makes a pod in flight active once more, at once, with what is known of the
// pod now: the node that it had found counts no longer.
func (q *Queue) Requeue(item *Item, pod *cluster.Pod) {
	q.SetPod(item, pod)
	q.queue(item, EventForceActivate)
}

// Activate makes an unschedulable or held pod active at once, before its backoff ends;
// pods at other stages are left alone.
func (q *Queue) Activate(item *Item) {
	if item.stage == Unschedulable || item.stage == Held {
		q.takeOut(item)
		q.activate(item, EventForceActivate)
	}
}

// NextWake returns when a backoff ends or a leftover sweep is due, zero for never.
func (q *Queue) NextWake() time.Time {
	var next int64
	if q.expiry.Len() > 0 {
		next = q.expiry.items[0].until
	}
	if q.unplaced.Len() > 0 {
		if due := q.unplaced.items[0].tried + int64(q.cfg.leftover()); next == 0 || due < next {
			next = due
		}
	}
	if since, any := q.longestWait(); any {
		if due := since + int64(q.cfg.leftover()); next == 0 || due < next {
			next = due
		}
	}
	if next == 0 {
		return time.Time{}
	}
	return time.Unix(0, next)
}

// Rejected returns the pods that were tried and found no node, in the order of
// scheduling: those a larger cluster might help, unless a decision has nominated them. Members of
// pod groups aren't among them: nodes are bought for a group as a whole (RejectedGroups).
func (q *Queue) Rejected() []*Item {
	rejected := func(item *Item) bool {
		return item.diagnosis != nil && item.stage != Gated && item.stage != InFlight && item.stage != Grouped
	}
	// Most are those of the last call, in their order still.
	q.listing++
	out := make([]*Item, 0, len(q.rejected)+1)
	for _, item := range q.rejected {
		if rejected(item) { // one that was removed counts as in flight
			item.listed = q.listing
			out = append(out, item)
		}
	}
	if len(out) < len(q.items) { // there may be others
		for _, item := range q.items {
			if item.listed != q.listing && rejected(item) {
				out = append(out, item)
			}
		}
	}
	if !q.areSorted(out) {
		sort.Slice(out, func(i, j int) bool { return q.less(out[i], out[j]) })
	}
	q.rejected = append(q.rejected[:0], out...)
	clear(q.rejected[len(out):cap(q.rejected)]) // it holds no pod that is gone
	return out
}

// areSorted reports whether items are in the order of scheduling.
func (q *Queue) areSorted(items []*Item) bool {
	for i := 1; i < len(items); i++ {
		if q.less(items[i], items[i-1]) {
			return false
		}
	}
	return true
}

// Classes returns the classes of the pods in the queue, and those with which held pods are
// counted.
func (q *Queue) Classes() map[*engine.Class]bool {
	out := map[*engine.Class]bool{}
	for _, item := range q.items {
		out[item.class] = true
	}
	for class := range q.groupClasses {
		out[class] = true
	}
	for class := range q.waiting { // a held pod may have been signed again
		out[class] = true
	}
	return out
}

// takeOut takes a pod out of its stage; it is in flight then.
func (q *Queue) takeOut(item *Item) {
	switch item.stage {
	case Active:
		heap.Remove(&q.active, item.at)
	case Backoff:
		if !item.afterError {
			heap.Remove(&q.backoff, item.at)
		}
		heap.Remove(&q.expiry, item.expires)
	case Gated:
		q.ungate(item)
	case Grouped:
		q.leave(item)
	case Held:
		q.held--
		item.diagnosis = item.heldWith.diagnosis
		item.heldWith.held--
		q.prune(item.heldWith)
		item.heldWith = nil
	case Unschedulable:
		if g := item.group; g != nil {
			heap.Remove(&q.unplaced, item.expires)
			q.dropWaits(g)
			break
		}
		w := q.waiting[item.class]
		item.diagnosis = w.diagnosis
		heap.Remove(w.heapOf(item), item.at)
		q.prune(w)
	}
	item.stage = InFlight
}

// queue makes a pod in flight active, for the reason that event names: with its pod group, or alone.
func (q *Queue) queue(item *Item, event string) {
	if q.keyOf(item.Pod()) == nil {
		q.activate(item, event)
		return
	}
	q.retryGroup(q.join(item), event)
}

// activate puts a pod in flight into active, for the reason that event names.
func (q *Queue) activate(item *Item, event string) {
	item.noteEvent(event)
	q.came[Incoming{"active", event}]++
	item.stage, item.afterError = Active, false
	heap.Push(&q.active, item)
}

// backOff puts a pod in flight into backoff, for the reason that event names.
func (q *Queue) backOff(item *Item, event string) {
	item.noteEvent(event)
	q.came[Incoming{"backoff", event}]++
	item.stage = Backoff
	q.pushBackoff(item)
}

// pushBackoff puts an item into the heaps of those in backoff.
func (q *Queue) pushBackoff(item *Item) {
	if !item.afterError {
		heap.Push(&q.backoff, item)
	}
	heap.Push(&q.expiry, item)
}

// noteEvent records why an item is tried: if it is something else than the
// leftover sweep, or the end of the backoff after it, the item isn't swept.
func (i *Item) noteEvent(event string) {
	if event != EventTimeout && event != EventBackoffComplete {
		i.swept = false
	}
}
