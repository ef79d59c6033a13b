package queue

// This file holds the pod groups (KEP-4671): their members are decided on together, and one item stands
// for them in the queue.
//
//	a member is    when
//	grouped        its group's item stands for it, wherever that is
//	gated          a plugin keeps it out; its group is kept out with it
//	in flight      it was given a node (MembersPlaced)
//
//	the item is    the group                                   what takes it out of it
//	gated          can't be tried (HoldGroup)                  ReleaseGroup: active
//	active,        is to be tried; all of its members are      Pop: in flight. HoldGroup: gated
//	backoff
//	in flight      is decided on                               RejectGroup: unschedulable. MembersPlaced, and no
//	                                                           member waits any more: the group is forgotten
//	unschedulable  waits for a change that helps a class of    WakeGroups, Sweep: active or backoff. A member that
//	               its members                                 comes, or changes: the same
//
// A group exists while a member of it is grouped or gated. Its item has the place of the member that
// is first in the queue's order; one that has begun goes before others of its priority (SetBegun).

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// Group is the members of a pod group that have no node.
type Group struct {
	key     cluster.PodGroupKey
	item    *Item
	members []*Item // that are grouped, in the queue's order
	gated   int     // members that a plugin keeps out of the queue
	held    string  // why it can't be tried
	begun   bool    // some members have nodes, and fewer than must
	// waits are the classes for a change of which an unschedulable group waits.
	waits []GroupWait
}

// GroupWait is a class of which members of a group found no node.
type GroupWait struct {
	Class *engine.Class
	// Everywhere is set when the class was rejected on all nodes at once.
	Everywhere bool
}

// Key returns the name of the group.
func (g *Group) Key() cluster.PodGroupKey { return g.key }

// Item returns the item that stands for the group.
func (g *Group) Item() *Item { return g.item }

// Members returns the members that are to be given nodes, in the order of scheduling. The list is the
// queue's: it is valid until the group changes.
func (g *Group) Members() []*Item { return g.members }

// Gated returns how many members a plugin keeps out of the queue.
func (g *Group) Gated() int { return g.gated }

// Held returns why the group can't be tried, "" when it can or wasn't looked at yet.
func (g *Group) Held() string { return g.held }

// Waits returns the classes for a change of which the group waits.
func (g *Group) Waits() []GroupWait { return g.waits }

// Group returns the group that an item stands for; nil when it is a pod's.
func (i *Item) Group() *Group { return i.group }

// keyOf returns the group that a pod is queued with; nil when it is queued alone.
func (q *Queue) keyOf(pod *cluster.Pod) *cluster.PodGroupKey {
	if !q.cfg.PodGroups {
		return nil
	}
	return pod.Group
}

// Group returns a group, nil when no member of it is grouped or gated.
func (q *Queue) Group(key cluster.PodGroupKey) *Group { return q.groups[key] }

// WaitsWithGroup returns the group with which a grouped or gated member waits; nil for others.
func (i *Item) WaitsWithGroup() *Group { return i.in }

// Groups returns all groups, by name.
func (q *Queue) Groups() []*Group {
	out := make([]*Group, 0, len(q.groups))
	for _, g := range q.groups {
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b *Group) int { return a.key.Compare(b.key) })
	return out
}

// AnyGroups reports whether there is any group, in O(1).
func (q *Queue) AnyGroups() bool { return len(q.groups) > 0 }

// ChangedGroups returns the groups that members have joined or left since the last call, by name.
func (q *Queue) ChangedGroups() (out []*Group) {
	if len(q.changed) == 0 {
		return nil
	}
	for key := range q.changed {
		if g := q.groups[key]; g != nil {
			out = append(out, g)
		}
	}
	clear(q.changed)
	slices.SortFunc(out, func(a, b *Group) int { return a.key.Compare(b.key) })
	return out
}

// groupFor returns the group of a name, which is made, and held, if there is none.
func (q *Queue) groupFor(key cluster.PodGroupKey) *Group {
	q.changed[key] = true
	g := q.groups[key]
	if g == nil {
		g = &Group{key: key}
		g.item = &Item{group: g, stage: Gated}
		q.groups[key] = g
	}
	return g
}

// join has a member in flight wait with its group.
func (q *Queue) join(item *Item) *Group {
	g := q.groupFor(*item.Pod().Group)
	item.stage, item.in = Grouped, g
	at, _ := slices.BinarySearchFunc(g.members, item, q.compare)
	g.members = slices.Insert(g.members, at, item)
	q.setLeader(g)
	return g
}

// compare compares items by the order of scheduling.
func (q *Queue) compare(a, b *Item) int {
	switch {
	case q.less(a, b):
		return -1
	case q.less(b, a):
		return 1
	}
	return 0
}

// leave takes a grouped member out of its group; it is in flight then.
func (q *Queue) leave(item *Item) {
	g := item.in
	at, found := slices.BinarySearchFunc(g.members, item, q.compare)
	if !found || g.members[at] != item {
		at = slices.Index(g.members, item) // its priority has changed
	}
	g.members = slices.Delete(g.members, at, at+1)
	item.stage, item.in = InFlight, nil
	q.changed[g.key] = true
	q.setLeader(g)
	q.forgetIfEmpty(g)
}

// forgetIfEmpty forgets a group of which no member waits.
func (q *Queue) forgetIfEmpty(g *Group) {
	if len(g.members) > 0 || g.gated > 0 {
		return
	}
	q.takeOut(g.item)
	delete(q.groups, g.key)
}

// SetBegun says whether some members of a group have nodes, and fewer than must: the nodes do nobody
// any good until the others have some, too, so the group is tried before whatever has its priority, as if
// it had been there first.
func (q *Queue) SetBegun(g *Group, begun bool) {
	if g.begun != begun {
		g.begun = begun
		q.setLeader(g)
	}
}

// setLeader gives the group's item the place of its first member in the order of scheduling.
func (q *Queue) setLeader(g *Group) {
	if len(g.members) == 0 {
		return
	}
	item, first := g.item, g.members[0].queued
	if g.begun {
		first.Queued = 0
	}
	same := item.queued.Pod != nil && item.queued.Pod.Priority == first.Pod.Priority && item.queued.Queued == first.Queued && item.queued.Sequence == first.Sequence
	if same || item.stage != Active && item.stage != Backoff && item.stage != Unschedulable {
		item.queued = first
		return
	}
	switch item.stage {
	case Active:
		heap.Remove(&q.active, item.at)
		item.queued = first
		heap.Push(&q.active, item)
	case Backoff:
		if !item.afterError {
			heap.Remove(&q.backoff, item.at)
		}
		heap.Remove(&q.expiry, item.expires)
		item.queued = first
		q.pushBackoff(item)
	case Unschedulable:
		heap.Remove(&q.unplaced, item.expires)
		item.queued = first
		heap.Push(&q.unplaced, item)
	}
}

// HoldGroup keeps a group out of the queue, for a reason.
func (q *Queue) HoldGroup(g *Group, why string) {
	if g.item.stage != Gated {
		q.takeOut(g.item)
		g.item.stage = Gated
	}
	g.held = why
}

// ReleaseGroup lets a group that was held be tried, once its backoff is over. Other groups stay as they
// are.
func (q *Queue) ReleaseGroup(now time.Time, g *Group) {
	g.held = ""
	if g.item.stage != Gated {
		return
	}
	if q.takeOut(g.item); g.item.until > now.UnixNano() {
		q.backOff(g.item, EventChange)
	} else {
		q.activate(g.item, EventChange)
	}
}

// MembersPlaced says that members of a group in flight were given nodes: they are in flight, and
// their group doesn't stand for them any more.
func (q *Queue) MembersPlaced(g *Group, placed []*Item) {
	for _, item := range placed {
		item.stage, item.in = InFlight, nil
	}
	g.members = slices.DeleteFunc(g.members, func(item *Item) bool { return item.stage != Grouped })
	q.setLeader(g)
	q.forgetIfEmpty(g)
}

// RejectGroup lets a group in flight wait: members of it, of these classes, found no node. Without
// classes, it is tried again after any change. The backoff of groups is longer than that of pods by the
// square root of their size, as in kube-scheduler.
func (q *Queue) RejectGroup(now time.Time, g *Group, waits []GroupWait) {
	item := g.item
	item.attempts++
	item.tried = now.UnixNano()
	item.until = now.UnixNano() + int64(q.groupBackoff(g).backoff(item.attempts))
	for _, m := range g.members {
		m.attempts, m.tried, m.until = m.attempts+1, item.tried, item.until
	}
	g.waits = append([]GroupWait{}, waits...)
	for _, w := range waits {
		q.groupClasses[w.Class]++
	}
	q.came[Incoming{"unschedulable", EventFailure}]++
	item.stage = Unschedulable
	heap.Push(&q.unplaced, item)
}

// groupBackoff returns the times by which a group backs off.
func (q *Queue) groupBackoff(g *Group) Config {
	cfg := q.cfg
	if size := len(g.members); size > 1 {
		cfg.MaxBackoff = time.Duration(float64(cfg.MaxBackoff) * math.Sqrt(float64(size)))
	}
	return cfg
}

// failMember has a member in flight wait with its group, which backs off after an error.
func (q *Queue) failMember(now time.Time, item *Item) {
	g := q.join(item)
	x := g.item
	if x.stage != Gated {
		q.takeOut(x)
	}
	x.afterError = true
	x.until = max(x.until, now.UnixNano()+int64(q.groupBackoff(g).errorBackoff(item.failures)))
	if x.stage != Gated { // otherwise it backs off when it is released
		q.backOff(x, EventFailure)
	}
}

// retryGroup lets an unschedulable group be tried, once its backoff is over. Other groups stay as they
// are.
func (q *Queue) retryGroup(g *Group, event string) {
	if g.item.stage != Unschedulable {
		return
	}
	q.takeOut(g.item)
	q.backOff(g.item, event) // Pop ends a backoff whose time is over
}

// RejectedGroups returns the groups that were tried and found too few nodes, in the order of scheduling,
// but for those that can't be tried any more.
func (q *Queue) RejectedGroups() (out []*Group) {
	for _, g := range q.groups {
		if g.held == "" && g.item.stage != InFlight && g.item.attempts > 0 && len(g.members) > 0 {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b *Group) int { return cmp.Or(q.compare(a.item, b.item), a.key.Compare(b.key)) })
	return out
}

// ActivateGroup lets a group be tried though its backoff isn't over.
func (q *Queue) ActivateGroup(g *Group) {
	if g.item.stage == Unschedulable || g.item.stage == Backoff {
		q.takeOut(g.item)
		q.activate(g.item, EventForceActivate)
	}
}

// WakeGroup ends the wait of an unschedulable group, as WakePod does for a pod: its backoff stays.
func (q *Queue) WakeGroup(now time.Time, g *Group) {
	if g.item.stage == Unschedulable {
		q.WakePod(now, g.item)
	}
}

// RetryGroup requeues a group that has changed, as after a change of one of its members.
func (q *Queue) RetryGroup(g *Group) { q.retryGroup(g, EventUpdate) }

// reclassifyMembers classifies those members of a group again that it concerns, and reports whether any
// has another class now.
func (q *Queue) reclassifyMembers(g *Group, classOf func(*cluster.Pod) *engine.Class, concerns func(*cluster.Pod) bool) (changed bool) {
	for _, item := range g.members {
		if !concerns(item.Pod()) {
			continue
		}
		c := classOf(item.Pod())
		changed = changed || c != item.class
		q.classify(item, c)
	}
	return changed
}

// WakeGroups asks, once for each class that unschedulable groups wait for, whether changes may make
// room for more pods of it, and retries the groups that wait for such a class.
func (q *Queue) WakeGroups(now time.Time, mayHelp func(*engine.Class, bool) bool) {
	if q.unplaced.Len() == 0 {
		return
	}
	helped := map[GroupWait]bool{}
	for _, item := range q.unplaced.items { // in any order: each class is asked once, and answers the same
		for _, w := range item.group.waits {
			if _, asked := helped[w]; !asked {
				helped[w] = mayHelp(w.Class, w.Everywhere)
			}
		}
	}
	q.wakeGroups(now, func(g *Group) bool {
		return len(g.waits) == 0 || slices.ContainsFunc(g.waits, func(w GroupWait) bool { return helped[w] })
	})
}

// wakeGroups makes the unschedulable groups active of which due is true, in the order of scheduling.
func (q *Queue) wakeGroups(now time.Time, due func(*Group) bool) {
	var woken []*Item
	for _, item := range q.unplaced.items {
		if due(item.group) {
			woken = append(woken, item)
		}
	}
	slices.SortFunc(woken, q.compare)
	for _, item := range woken {
		q.takeOut(item)
		q.tryWoken(now.UnixNano(), item)
	}
}

// sweepGroups makes the groups active that have waited for Config.Leftover.
func (q *Queue) sweepGroups(now time.Time) {
	if q.unplaced.Len() == 0 || now.UnixNano()-q.unplaced.items[0].tried < int64(q.cfg.leftover()) {
		return
	}
	q.wakeGroups(now, func(g *Group) bool { return now.UnixNano()-g.item.tried >= int64(q.cfg.leftover()) })
}

// dropWaits forgets what a group has waited for.
func (q *Queue) dropWaits(g *Group) {
	for _, w := range g.waits {
		addTo(q.groupClasses, w.Class, -1)
	}
	g.waits = nil
}

// addTo adds delta to a count; no count of zero is kept.
func addTo[K comparable](m map[K]int, key K, delta int) {
	if m[key] += delta; m[key] == 0 {
		delete(m, key)
	}
}
