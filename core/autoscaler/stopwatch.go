package autoscaler

import "slices"

// Stopwatch tells a plan in the making when it has taken long enough. A plan that has buys
// what it has decided by then, and leaves the rest to the next.
//
// Planning knows no time, so that a plan follows from its request alone. It asks a stopwatch
// at places that depend on nothing else, and counts its questions: a plan has the numbers
// of those that were answered with yes (Plan.Cuts), and a stopwatch that answers these, and
// only these, with yes brings the same plan again. That is how recordings are replayed.
type Stopwatch interface {
	// Start begins to measure a span.
	Start(Span)
	// Over reports whether a span has taken as long as it may.
	Over(Span) bool
}

// Span is a part of planning that is bounded.
type Span uint8

const (
	// WholePlan is one plan (--max-binpacking-time).
	WholePlan Span = iota
	// OneGroup is packing the pending pods on nodes of one group
	// (--max-nodegroup-binpacking-duration). It ends with the whole plan.
	OneGroup
	// Drains is looking for nodes that could be removed (--scale-down-simulation-timeout).
	Drains
)

// Spans is how many spans there are.
const Spans = int(Drains) + 1

// Questions are those of one plan in the making to a stopwatch.
type Questions struct {
	Watch Stopwatch // nil for no bound
	Cuts  []int     // the numbers of those that were answered with yes: Plan.Cuts
	// asked is the number of the last question. A replay gives the same answers by these numbers
	// (Cuts), since it can't measure the same times.
	asked int
}

// Start begins to measure a span.
func (q *Questions) Start(s Span) {
	if q.Watch != nil {
		q.Watch.Start(s)
	}
}

// Over asks whether a span has taken as long as it may.
func (q *Questions) Over(s Span) bool {
	if q.Watch == nil {
		return false
	}
	q.asked++
	over := q.Watch.Over(s)
	if over {
		q.Cuts = append(q.Cuts, q.asked)
	}
	return over
}

// Asked returns how many questions were asked.
func (q *Questions) Asked() int { return q.asked }

// Skip counts questions as asked, and answered with no, and reports whether it could: not when
// the stopwatch knows that one of them is answered with yes.
func (q *Questions) Skip(n int) bool {
	if q.Watch == nil {
		return true
	}
	if c, ok := q.Watch.(*Cuts); ok && !c.skip(n) {
		return false
	}
	q.asked += n
	return true
}

// Cuts are a stopwatch that knows which questions of one plan are answered with yes: the
// first is 1.
type Cuts struct {
	At []int // sorted
	// asked starts from 0 with each plan: Start(WholePlan) resets it.
	asked int
}

var _ Stopwatch = (*Cuts)(nil)

// Start implements Stopwatch.
func (c *Cuts) Start(s Span) {
	if s == WholePlan {
		c.asked = 0
	}
}

// Over implements Stopwatch.
func (c *Cuts) Over(Span) bool {
	c.asked++
	_, over := slices.BinarySearch(c.At, c.asked)
	return over
}

// skip counts questions as asked, and reports whether it could: not if one of them is answered with
// yes.
func (c *Cuts) skip(n int) bool {
	at, yes := slices.BinarySearch(c.At, c.asked+1)
	if yes || at < len(c.At) && c.At[at] <= c.asked+n {
		return n == 0
	}
	c.asked += n
	return true
}
