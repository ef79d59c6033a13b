package queue

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Invariants says, a line each, what must be true of the queue and isn't. Tests call
// it after every operation; it returns none unless Berth has a defect. It must be
// true that
//
//   - a pod is in the heaps of its stage, where it says that it is, and in no other;
//     each heap is in order
//   - an unschedulable pod is in its own class's heap for pods that are nominated or
//     for those that aren't
//   - gated and held count the pods at those stages, and each class its held ones
//   - a class that waits has pods or held ones, and a diagnosis; one that is probed
//     has a probe; an exhausted one has held pods alone
//   - a probe is on its way: active, in backoff or in flight
//   - a grouped pod is among the members of its group, a gated member is counted there, and a group's
//     item is where its stage says
//
// It costs O(pods).
func (q *Queue) Invariants() []string {
	c := checker{q: q, held: map[*WaitingClass]int{}, probes: map[*WaitingClass]bool{}}
	c.heap("active", &q.active)
	c.heap("backoff", &q.backoff)
	c.heap("expiry", &q.expiry)
	c.heap("unplaced", &q.unplaced)
	longest := int64(0)
	for _, w := range q.waiting { // in any order: the lines are sorted
		c.heap("waiting", &w.pods)
		c.heap("nominated", &w.nominated)
		if w.state == waiting && (longest == 0 || w.since < longest) {
			longest = w.since
		}
		if !slices.Contains(q.ordered, w) {
			c.fail("class %d waits, and isn't among those that do", w.class.ID)
		}
	}
	if len(q.ordered) != len(q.waiting) || !slices.IsSortedFunc(q.ordered, precedes) {
		c.fail("%d classes wait, and the list of them has %d, sorted: %t", len(q.waiting), len(q.ordered), slices.IsSortedFunc(q.ordered, precedes))
	}
	if since, _ := q.longestWait(); since != longest {
		c.fail("a class has waited since %d, and the longest wait is noted as since %d", longest, since)
	}
	for uid, item := range q.items { // in any order: the lines are sorted
		c.item(uid, item)
	}
	c.groups()
	if c.inHeaps != c.expected {
		c.fail("%d pods are in heaps, and %d belong there", c.inHeaps, c.expected)
	}
	if c.gated != q.gated {
		c.fail("%d pods are gated, and %d are counted", c.gated, q.gated)
	}
	total := 0
	for _, n := range c.held {
		total += n
	}
	if total != q.held {
		c.fail("%d pods are held, and %d are counted", total, q.held)
	}
	for class, w := range q.waiting { // in any order, too
		if class != w.class {
			c.fail("class %d waits as class %d", w.class.ID, class.ID)
		}
		c.waiting(w)
	}
	slices.Sort(c.broken)
	return c.broken
}

// checker gathers what is broken, and what it has counted on the way.
type checker struct {
	q      *Queue
	broken []string
	held   map[*WaitingClass]int
	probes map[*WaitingClass]bool // whether some pod is a probe of it
	gated  int
	// inHeaps is how many places all heaps have, and expected how many the pods'
	// stages ask for. Where each pod is found at its own place and the sums are
	// equal, no pod is at another besides.
	inHeaps, expected int
}

func (c *checker) fail(format string, args ...any) {
	c.broken = append(c.broken, fmt.Sprintf(format, args...))
}

// heap checks the order of a heap, and that its items know where they are.
func (c *checker) heap(name string, h *itemHeap) {
	c.inHeaps += h.Len()
	for at, item := range h.items {
		if !c.queued(item) {
			c.fail("%s is in the heap %s, and not in the queue", item.Pod().Name(), name)
		}
		if *h.index(item) != at {
			c.fail("%s is at %d of the heap %s, and says %d", item.Pod().Name(), at, name, *h.index(item))
		}
		if parent := (at - 1) / 2; at > 0 && h.less(item, h.items[parent]) {
			c.fail("%s comes before its parent %s in the heap %s", item.Pod().Name(), h.items[parent].Pod().Name(), name)
		}
	}
}

// item checks that an item is where its stage says, and counts it.
func (c *checker) item(uid types.UID, item *Item) {
	if item.Pod().UID != uid {
		c.fail("%s is in the queue as %s", item.Pod().Name(), uid)
	}
	switch item.stage {
	case Active:
		c.expect(item, &c.q.active)
	case Backoff:
		c.expect(item, &c.q.expiry)
		if !item.afterError {
			c.expect(item, &c.q.backoff)
		}
	case Unschedulable:
		if w := c.q.waiting[item.class]; w != nil {
			c.expect(item, w.heapOf(item))
		} else {
			c.fail("%s is unschedulable, and its class doesn't wait", item.Pod().Name())
		}
	case Gated:
		c.gated++
	case Grouped:
		if item.in == nil || !slices.Contains(item.in.members, item) {
			c.fail("%s is grouped, and isn't among the members of its group", item.Pod().Name())
		}
	case Held:
		c.held[item.heldWith]++
	}
	if (item.heldWith != nil) != (item.stage == Held) {
		c.fail("%s is %s, and held with a class: %v", item.Pod().Name(), item.stage, item.heldWith != nil)
	}
	if item.probeOf == nil {
		return
	}
	c.probes[item.probeOf] = true
	if item.stage != Active && item.stage != Backoff && item.stage != InFlight {
		c.fail("%s is %s, and a probe", item.Pod().Name(), item.stage)
	}
}

// queued reports whether an item is the queue's, as a pod's or as a group's.
func (c *checker) queued(item *Item) bool {
	if g := item.group; g != nil {
		return c.q.groups[g.key] == g && g.item == item
	}
	return c.q.items[item.Pod().UID] == item
}

// groups checks the groups.
func (c *checker) groups() {
	classes, gatedOf := 0, map[*Group]int{}
	for _, item := range c.q.items {
		if item.in != nil && item.stage == Gated {
			gatedOf[item.in]++
		}
	}
	for key, g := range c.q.groups { // in any order: the lines are sorted
		gated := gatedOf[g]
		for _, m := range g.members {
			if m.in != g || m.stage != Grouped {
				c.fail("%s is a member of %s, and is %s", m.Pod().Name(), key, m.stage)
			}
		}
		switch {
		case gated != g.gated || len(g.members) == 0 && gated == 0:
			c.fail("group %s has %d gated members, counts %d, and has %d others", key, gated, g.gated, len(g.members))
		case len(g.members) > 0 && g.item.Sequence() != g.members[0].Sequence():
			c.fail("group %s has the place of another than its first member", key)
		case !slices.IsSortedFunc(g.members, c.q.compare):
			c.fail("the members of group %s aren't in order", key)
		}
		switch g.item.stage {
		case Active:
			c.expect(g.item, &c.q.active)
		case Backoff:
			c.expect(g.item, &c.q.expiry)
			if !g.item.afterError {
				c.expect(g.item, &c.q.backoff)
			}
		case Unschedulable:
			c.expect(g.item, &c.q.unplaced)
		}
		if (g.item.stage == Unschedulable) != (g.waits != nil) {
			c.fail("group %s is %s, and waits for %d classes", key, g.item.stage, len(g.waits))
		}
		classes += len(g.waits)
	}
	for _, n := range c.q.groupClasses {
		classes -= n
	}
	if classes != 0 {
		c.fail("groups wait for %d classes more than are counted", classes)
	}
}

// expect checks that an item is in a heap where it says.
func (c *checker) expect(item *Item, h *itemHeap) {
	c.expected++
	if at := *h.index(item); at >= h.Len() || h.items[at] != item {
		c.fail("%s is %s, and isn't in the heap for it", item.Pod().Name(), item.stage)
	}
}

// waiting checks a class in which items have been counted.
func (c *checker) waiting(w *WaitingClass) {
	if w.held != c.held[w] {
		c.fail("class %d has %d held pods, and counts %d", w.class.ID, c.held[w], w.held)
	}
	if w.diagnosis == nil {
		c.fail("class %d is %s without a diagnosis", w.class.ID, w.state)
	}
	switch {
	case w.state == waiting && w.Pods() == 0:
		c.fail("class %d waits without a pod", w.class.ID)
	case w.state.probing() && !c.probes[w]:
		c.fail("class %d is %s without a probe", w.class.ID, w.state)
	case w.state == exhausted && (w.Pods() != w.held || w.held == 0):
		c.fail("class %d is exhausted, with %d pods that wait and %d held ones", w.class.ID, w.Pods()-w.held, w.held)
	}
}
