package queue

// This file has the pods that a plugin keeps out of the queue.

import (
	"cmp"
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// gate puts a pod in flight behind its gate.
func (q *Queue) gate(item *Item) {
	item.stage = Gated
	q.gated++
	if key := q.keyOf(item.Pod()); key != nil {
		item.in = q.groupFor(*key)
		item.in.gated++
	}
}

// ungate is the inverse of gate. A group has a gate of its own (HoldGroup).
func (q *Queue) ungate(item *Item) {
	if item.group != nil {
		return
	}
	q.gated--
	if g := item.in; g != nil {
		item.in = nil
		g.gated--
		q.changed[g.key] = true
		q.forgetIfEmpty(g)
	}
}

// Regate asks again for the gates of the pods that a change concerns: one that has got a gate is kept
// out of the queue, and one that has lost its gate is tried. It returns both, and those that are gated
// still, in the order in which they came to the queue. Held pods and those in flight are left alone:
// what becomes of them comes first.
func (q *Queue) Regate(concerns func(*cluster.Pod) bool, gateOf func(*cluster.Pod) *framework.Reason) (changed []*Item) {
	for _, item := range q.items {
		if item.stage != Held && item.stage != InFlight && !item.Pod().StandsIn() && concerns(item.Pod()) {
			changed = append(changed, item)
		}
	}
	slices.SortFunc(changed, func(a, b *Item) int { return cmp.Compare(a.Sequence(), b.Sequence()) })
	return slices.DeleteFunc(changed, func(item *Item) bool {
		was, is := item.stage == Gated, gateOf(item.Pod()) != nil
		switch {
		case is && !was:
			q.takeOut(item)
			q.endProbe(item)
			q.gate(item)
		case was && !is:
			q.takeOut(item)
			item.unsigned = true // nobody has kept up its class
			q.queue(item, EventChange)
		}
		return !was && !is
	})
}
