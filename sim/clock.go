package sim

import (
	"container/heap"
	"math"
	"time"

	"github.com/berthproject/berth/internal/seeded"
)

// This file is virtual time: a queue of events, and a clock that jumps from one tick
// with events to the next. The order of events within a tick depends on the seed and
// on nothing else: by phase, then within phaseCalls and phaseWatch as they were
// added, within phaseWorld shuffled by the seed.

// tick is the grain of virtual time: every event is at a multiple of it.
const tick = 10 * time.Millisecond

// Epoch is when virtual time begins.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// tickPhase is the part of a tick in which an event happens. Berth's Steps come after
// the last.
type tickPhase uint8

const (
	phaseCalls tickPhase = iota // Berth's calls reach the API server and the cloud
	phaseWorld                  // kubelets, controllers, the cloud and faults act
	phaseWatch                  // changes, and plans, reach Berth
)

// event is something that happens once, at a time.
type event struct {
	at         time.Duration
	phase      tickPhase
	order      uint64 // among the events of its phase
	background bool   // doesn't keep the run going
	do         func()
}

// clock is a queue of events in virtual time.
type clock struct {
	seed       uint64
	now        time.Duration // since Epoch
	events     []*event      // a heap
	serial     uint64        // of the last event
	foreground int           // how many events of the queue keep the run going
}

// after calls do when d has passed, rounded up to a tick. With d = 0 that is in the tick
// that runs, also if the events of the phase have all run: do is next then.
func (c *clock) after(d time.Duration, p tickPhase, do func()) { c.add(d, p, false, do) }

// afterInBackground is after for what happens again and again, and for what Berth does of
// itself: a run may end while such events are in the queue.
func (c *clock) afterInBackground(d time.Duration, p tickPhase, do func()) { c.add(d, p, true, do) }

// farAway is later than any run ends, and can be added to a time without an overflow.
const farAway = math.MaxInt64 / 4

// add puts an event into the queue. A negative d counts as 0, one beyond farAway as that.
func (c *clock) add(d time.Duration, p tickPhase, background bool, do func()) {
	c.serial++
	e := &event{at: (c.now + min(max(d, 0), farAway) + tick - 1).Truncate(tick), phase: p, order: c.serial, background: background, do: do}
	if p == phaseWorld {
		e.order = seeded.Uint64(c.seed^c.serial, "order")
	}
	if !background {
		c.foreground++
	}
	heap.Push(c, e)
}

// next runs the events of the next tick that has some, and those that they add to it. It
// returns false, and runs nothing, when the next tick is after until or there is none.
func (c *clock) next(until time.Duration) bool {
	if len(c.events) == 0 || c.events[0].at > until {
		return false
	}
	c.now = max(c.now, c.events[0].at)
	for len(c.events) > 0 && c.events[0].at <= c.now {
		e := heap.Pop(c).(*event)
		if !e.background {
			c.foreground--
		}
		e.do()
	}
	return true
}

// The methods of heap.Interface: the next event is the least.

func (c *clock) Len() int { return len(c.events) }

// Less orders events of one instant by their phase, and by when they were added: no two are equal, so that
// a run is the same each time.
func (c *clock) Less(i, j int) bool {
	a, b := c.events[i], c.events[j]
	if a.at != b.at {
		return a.at < b.at
	}
	if a.phase != b.phase {
		return a.phase < b.phase
	}
	return a.order < b.order
}
func (c *clock) Swap(i, j int) { c.events[i], c.events[j] = c.events[j], c.events[i] }
func (c *clock) Push(x any)    { c.events = append(c.events, x.(*event)) }
func (c *clock) Pop() any {
	last := len(c.events) - 1
	e := c.events[last]
	c.events[last] = nil
	c.events = c.events[:last]
	return e
}
