package queue

// This file holds the waiting classes: of which unschedulable pods wait, why, and
// what makes them active.
//
//	state             event                                          next state
//	-                 a pod of the class is rejected or held         waiting
//	waiting           Wake, WakeClass: it fits after a change        probingFit
//	                  … or others could leave for it                 probingPreempt
//	                  Sweep: it has waited for Config.Leftover       probingLeftover
//	probing…          the probe found a node, was removed, or is
//	                  of another class now                           the same, with the next probe
//	                  … and no pod waits                             exhausted
//	probingPreempt    … and only nominated pods wait                 waiting
//	probing…          the probe could preempt, and that is put off   probingPreempt, with the next probe
//	probing…          a pod of the class is tried in vain            waiting
//	exhausted         a pod of the class is rejected or held, or
//	                  held no longer                                 waiting
//	any               no pod waits, and none is held                 -
//
// The probe is the pod of a woken class that is tried. As long as each probe finds
// a node the next pod is made the probe, and when one doesn't, the others needn't be
// tried. A probe is out until it was decided on, even if the class waits again
// because another pod, a new one, was rejected meanwhile; if then the class is woken
// again before that, it has two probes for a while.
//
// Pods that are nominated to a node aren't probes of a class that is woken to
// preempt: a nominated pod doesn't run PostFilter again while its victims are
// terminating.
//
// A class is asked about a change once while it waits, and not while it is probed:
// what the changes since mean for it is found out by trying the probe.

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// waitingState is the state of a waiting class.
type waitingState uint8

// The states.
const (
	waiting         waitingState = iota // for a change that helps
	probingFit                          // woken: the class fits
	probingPreempt                      // woken: preemption, which was ruled out, may help
	probingLeftover                     // woken: it has waited for long
	exhausted                           // woken, and all pods were tried; held pods are left
)

// String names the state.
func (s waitingState) String() string {
	return [...]string{"waiting", "probing for a fit", "probing for preemption", "probing leftovers", "exhausted"}[s]
}

// probing reports whether a probe of the class is out.
func (s waitingState) probing() bool {
	return s == probingFit || s == probingPreempt || s == probingLeftover
}

// WaitingClass are the unschedulable and held pods of one class.
type WaitingClass struct {
	// class is the key of Queue.waiting: every pod here has it, until it is reclassified.
	class *engine.Class
	// state follows the table above. Invariant: while it is probing, some pod has probeOf set to
	// this class; while it is exhausted, only held pods are left (invariants.go).
	state waitingState
	since int64 // when it came to wait or was woken, in nanoseconds
	// diagnosis says why the class fits on no node. This is the one place where
	// what is known of that is kept up to date.
	diagnosis *engine.Diagnosis
	pods      itemHeap // the unschedulable ones but for
	nominated itemHeap // those that are nominated to a node
	held      int      // pods whose victims are being asked to leave
}

// Class returns the class.
func (w *WaitingClass) Class() *engine.Class { return w.class }

// Diagnosis returns why the class fits on no node.
func (w *WaitingClass) Diagnosis() *engine.Diagnosis { return w.diagnosis }

// Pods returns how many pods of the class wait or are held.
func (w *WaitingClass) Pods() int { return w.pods.Len() + w.nominated.Len() + w.held }

// heapOf returns the heap in which a waiting pod belongs.
func (w *WaitingClass) heapOf(item *Item) *itemHeap {
	if item.nominated {
		return &w.nominated
	}
	return &w.pods
}

// StillRejected returns why the class was last rejected, if it waits and no
// change since could have helped; nil otherwise.
func (q *Queue) StillRejected(c *engine.Class) *engine.Diagnosis {
	if w := q.waiting[c]; w != nil && w.state == waiting {
		return w.diagnosis
	}
	return nil
}

// Reject puts a pod in flight with its class, of which d says why it fits on no
// node: it waits for a change that helps.
func (q *Queue) Reject(now time.Time, item *Item, d *engine.Diagnosis) {
	q.countAttempt(now, item)
	q.park(item, q.waitTried(now, item, d))
}

// Postpone puts a nominated pod in flight with its class, of which d says why it fits on no
// node: others could leave one for the pod, which is put off. The pod doesn't back off, and
// others of its class are tried: they could preempt, too.
func (q *Queue) Postpone(now time.Time, item *Item, d *engine.Diagnosis) {
	q.countAttempt(now, item)
	item.until = 0
	w := q.waiting[item.class]
	if w == nil || item.probeOf != w {
		q.endProbe(item)
		q.park(item, q.waitUntried(now, item, d))
		return
	}
	item.probeOf, item.diagnosis = nil, d
	q.park(item, w)
	w.state, w.diagnosis = probingPreempt, d // the class doesn't fit
	q.probe(w)
}

// Hold keeps a pod in flight, which found no node, until it is released: its
// victims are being asked to leave.
func (q *Queue) Hold(now time.Time, item *Item, d *engine.Diagnosis) {
	q.countAttempt(now, item)
	w := q.waitTried(now, item, d)
	w.held++
	item.stage, item.heldWith = Held, w
	q.held++
}

// countAttempt counts an attempt that found no node, and begins the backoff. As in kube-scheduler
// the backoff runs from the attempt, so that it may be over by the time the pod is woken.
func (q *Queue) countAttempt(now time.Time, item *Item) {
	item.attempts++
	item.tried = now.UnixNano()
	item.until = now.UnixNano() + int64(q.cfg.backoff(item.attempts))
}

// ReleaseToTry releases a held pod to be tried again: at once, or when its backoff is over.
func (q *Queue) ReleaseToTry(now time.Time, item *Item) {
	q.takeOut(item)
	if item.until > now.UnixNano() {
		q.backOff(item, EventChange)
	} else {
		q.activate(item, EventChange)
	}
}

// ReleaseToWait puts a held pod with its class, of which d says why it fits on no
// node, without having tried the pod.
func (q *Queue) ReleaseToWait(now time.Time, item *Item, d *engine.Diagnosis) {
	q.takeOut(item)
	q.park(item, q.waitUntried(now, item, d))
}

// park moves a pod that is in flight to the unschedulable ones of its class. It counts as incoming
// under the event of a failed attempt, as in kube-scheduler's queue_incoming_pods_total.
func (q *Queue) park(item *Item, w *WaitingClass) {
	q.came[Incoming{"unschedulable", EventFailure}]++
	item.stage = Unschedulable
	heap.Push(w.heapOf(item), item)
}

// waitTried returns the waiting class of a pod that was tried in vain, for the reason d,
// which is now the reason for the whole class.
func (q *Queue) waitTried(now time.Time, item *Item, d *engine.Diagnosis) *WaitingClass {
	w := q.waiting[item.class]
	if item.probeOf != w {
		q.endProbe(item) // the pod changed class while it was tried: its result says nothing about the old class
	}
	item.probeOf = nil
	item.diagnosis = d
	if w == nil {
		return q.newWaiting(now, item.class, d)
	}
	// A nominated pod doesn't look for victims while it waits for some: what it
	// found out doesn't say that preemption may help others.
	if known := w.diagnosis.Preemption(); !d.Preemption().RuledOut && w.pods.Len() > 0 {
		d = d.WithPreemption(known)
	}
	q.setWaiting(now, w, d)
	return w
}

// waitUntried returns the waiting class of a pod that comes to wait untried, for the reason
// d. If pods of the class wait already, or are tried, it waits with them.
func (q *Queue) waitUntried(now time.Time, item *Item, d *engine.Diagnosis) *WaitingClass {
	item.diagnosis = d
	w := q.waiting[item.class]
	switch {
	case w == nil:
		w = q.newWaiting(now, item.class, d)
	case w.state == exhausted:
		q.setWaiting(now, w, d)
	}
	return w
}

// newWaiting adds a waiting class, for a class of which no pod waits yet. The caller adds the pod:
// a waiting class without pods is pruned.
func (q *Queue) newWaiting(now time.Time, c *engine.Class, d *engine.Diagnosis) *WaitingClass {
	w := &WaitingClass{class: c, diagnosis: d, since: now.UnixNano(), pods: q.newHeap(), nominated: q.newHeap()}
	q.waiting[c] = w
	at, _ := slices.BinarySearchFunc(q.ordered, w, precedes)
	q.ordered = slices.Insert(q.ordered, at, w)
	q.noteWait(w)
	return w
}

// setWaiting puts a class into state waiting, for the reason d. A class that waits already keeps
// its since, by which the leftover sweep finds it.
func (q *Queue) setWaiting(now time.Time, w *WaitingClass, d *engine.Diagnosis) {
	if w.state != waiting {
		w.state, w.since = waiting, now.UnixNano()
		q.noteWait(w)
	}
	w.diagnosis = d
}

// Refresh replaces the diagnosis of a waiting class by one that says the same of the
// cluster as it is now. It leaves a class alone that doesn't wait.
func (q *Queue) Refresh(c *engine.Class, d *engine.Diagnosis) {
	if w := q.waiting[c]; w != nil && w.state == waiting {
		w.diagnosis = d
	}
}

// Wake asks each waiting class once what the changes since the last call do for it,
// and wakes those that they help. mayHelp is given the class's
// diagnosis, and returns the one to keep. Nominated pods that are to be tried for the sake
// of their own node are woken before (WakePod).
func (q *Queue) Wake(now time.Time, mayHelp func(*engine.Class, *engine.Diagnosis) (engine.Help, *engine.Diagnosis)) {
	for _, w := range q.inOrder() {
		q.ask(now, w, mayHelp)
	}
}

// WakeClass is Wake of one class, for changes that were made while a pod of it was in flight,
// which is rejected now as of before them. Its waiting pods were asked about them, but their
// class waits again since that rejection.
func (q *Queue) WakeClass(now time.Time, c *engine.Class, mayHelp func(*engine.Class, *engine.Diagnosis) (engine.Help, *engine.Diagnosis)) {
	if w := q.waiting[c]; w != nil {
		q.ask(now, w, mayHelp)
	}
}

// ask asks one class about the changes, and wakes it if they help. A class that is probed isn't
// asked: its probe sees the changes. mayHelp may return a newer diagnosis also when nothing helps.
func (q *Queue) ask(now time.Time, w *WaitingClass, mayHelp func(*engine.Class, *engine.Diagnosis) (engine.Help, *engine.Diagnosis)) {
	if w.state != waiting || w.Pods() == 0 {
		return
	}
	var help engine.Help
	help, w.diagnosis = mayHelp(w.class, w.diagnosis)
	switch help {
	case engine.Fits:
		q.wake(now, w, probingFit)
	case engine.Preempts:
		q.wake(now, w, probingPreempt)
	}
	q.prune(w)
}

// Sweep wakes the classes and the pod groups that have waited for Config.Leftover.
func (q *Queue) Sweep(now time.Time) {
	q.sweepGroups(now)
	if since, any := q.longestWait(); !any || now.UnixNano()-since < int64(q.cfg.leftover()) {
		return
	}
	for _, w := range q.Waiting() {
		if now.UnixNano()-w.since >= int64(q.cfg.leftover()) {
			q.wake(now, w, probingLeftover)
		}
	}
}

// wake ends a class's waiting: its first pod is tried.
func (q *Queue) wake(now time.Time, w *WaitingClass, state waitingState) {
	w.state, w.since = state, now.UnixNano()
	q.probe(w)
}

// probe makes the next pod of a woken class its probe: the first in the queue's order, nominated or
// not. For preemption nominated pods are left out. Without a pod that could be the probe, the
// probing ends.
func (q *Queue) probe(w *WaitingClass) {
	from := &w.pods
	if n := &w.nominated; w.state != probingPreempt && n.Len() > 0 && (from.Len() == 0 || q.less(n.items[0], from.items[0])) {
		from = n
	}
	switch {
	case from.Len() > 0:
		item := heap.Pop(from).(*Item)
		item.probeOf, item.diagnosis, item.swept = w, w.diagnosis, w.state == probingLeftover
		q.tryWoken(w.since, item)
	case w.nominated.Len() > 0: // they wait on; others may preempt now
		w.state = waiting
		q.noteWait(w)
		w.diagnosis = w.diagnosis.WithPreemption(engine.Preemption{})
	default:
		w.state = exhausted
		q.prune(w)
	}
}

// endProbe says that a pod is no probe any more, if it was one, without a result
// that would end the probing of its class: the class's next pod is tried.
func (q *Queue) endProbe(item *Item) {
	w := item.probeOf
	item.probeOf = nil
	if w != nil && w.state != waiting {
		q.probe(w)
	}
}

// WakePod takes an unschedulable pod out of its class to be tried, although the class isn't woken.
// The class goes on waiting with the others.
func (q *Queue) WakePod(now time.Time, item *Item) {
	q.takeOut(item)
	item.swept = false
	q.tryWoken(now.UnixNano(), item)
}

// tryWoken queues a pod that was woken at a time: as active, or, when its backoff ends later than
// that, in backoff.
func (q *Queue) tryWoken(at int64, item *Item) {
	item.afterError = false
	event := EventChange
	if item.swept {
		event = EventTimeout
	}
	if item.until > at {
		q.backOff(item, event)
	} else {
		q.activate(item, event)
	}
}

// prune forgets a class none of whose pods wait or are held. If its probe is out,
// what becomes of that concerns no other pod any more.
func (q *Queue) prune(w *WaitingClass) {
	if w.Pods() == 0 && q.waiting[w.class] == w {
		delete(q.waiting, w.class)
		at, _ := slices.BinarySearchFunc(q.ordered, w, precedes)
		q.ordered = slices.Delete(q.ordered, at, at+1)
	}
}

// precedes compares waiting classes by the order in which their profiles made them: each profile
// numbers its classes. Of two with one number the profile's name decides.
func precedes(a, b *WaitingClass) int {
	if order := cmp.Compare(a.class.ID, b.class.ID); order != 0 {
		return order // usual: the names cost more to look up
	}
	profile := func(w *WaitingClass) string { return w.class.Pod().Object.Spec.SchedulerName }
	return strings.Compare(profile(a), profile(b))
}

// inOrder returns the waiting classes by precedes. The list is the caller's.
func (q *Queue) inOrder() []*WaitingClass { return slices.Clone(q.ordered) }

// Waiting returns the classes that wait and aren't woken, as inOrder sorts them.
func (q *Queue) Waiting() []*WaitingClass {
	return slices.DeleteFunc(q.inOrder(), func(w *WaitingClass) bool { return w.state != waiting })
}

// Each calls f for every class of which pods wait or are held, woken or not, as inOrder
// sorts them.
func (q *Queue) Each(f func(*WaitingClass)) {
	for _, w := range q.inOrder() {
		f(w)
	}
}

// AnyWaits reports whether pods of any class wait, in O(1).
func (q *Queue) AnyWaits() bool { return len(q.waiting) > 0 }

// AnyNominatedWaits reports whether an unschedulable pod that is nominated is of a class of
// which ask is true.
func (q *Queue) AnyNominatedWaits(ask func(*engine.Class) bool) bool {
	for _, w := range q.waiting { // in any order: the answer is the same
		if w.nominated.Len() > 0 && ask(w.class) {
			return true
		}
	}
	return false
}

// Unnominated returns the unschedulable pods of a class that aren't nominated, in an
// order without a meaning, but the same one for the same history. It is the queue's
// own slice: to be read until the next call only.
func (q *Queue) Unnominated(c *engine.Class) []*Item {
	if w := q.waiting[c]; w != nil {
		return w.pods.items
	}
	return nil
}

// Classify classifies all pods of a queue of which none has been tried, in the order in which
// they came: they may have been added without a class.
func (q *Queue) Classify(classOf func(*cluster.Pod) *engine.Class) {
	items := slices.AppendSeq(make([]*Item, 0, len(q.items)), maps.Values(q.items))
	slices.SortFunc(items, func(a, b *Item) int { return cmp.Compare(a.Sequence(), b.Sequence()) })
	for _, item := range items {
		if item.stage != Active && item.stage != Gated && item.stage != Grouped {
			panic("queue: Classify with a pod that is " + item.stage.String())
		}
		q.classify(item, classOf(item.Pod()))
	}
}

// Reclassify classifies those of the pods again that it concerns, after the rules
// have come to read more of them, or other things of the cluster. Pods of waiting
// classes that it splits are tried again, and groups of which a member has another class.
func (q *Queue) Reclassify(classOf func(*cluster.Pod) *engine.Class, concerns func(*cluster.Pod) bool) {
	for _, w := range q.inOrder() {
		for _, item := range slices.Concat(w.pods.items, w.nominated.items) {
			if !concerns(item.Pod()) {
				continue
			}
			c := classOf(item.Pod())
			if c != w.class {
				q.takeOut(item)
				q.activate(item, EventChange)
			}
			q.classify(item, c)
		}
	}
	for _, g := range q.Groups() {
		if q.reclassifyMembers(g, classOf, concerns) {
			q.retryGroup(g, EventChange)
		}
	}
	for _, h := range []*itemHeap{&q.active, &q.expiry} {
		for _, item := range h.items {
			if item.group == nil && concerns(item.Pod()) {
				q.classify(item, classOf(item.Pod()))
			}
		}
	}
}
