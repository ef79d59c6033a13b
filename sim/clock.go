package sim

import (
	"container/heap"
	"time"

	"github.com/berthproject/berth/internal/seeded"
)

// tick is the grain of virtual time.
const tick = 10 * time.Millisecond

// Epoch is when virtual time begins.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type tickPhase uint8

const (
	phaseCalls tickPhase = iota // reach the API server and the cloud
	phaseWorld                  // of the world
	phaseWatch                  // changes reach Berth
)

type event struct {
	at         time.Duration
	phase      tickPhase
	order      uint64
	background bool // doesn't keep the run going
	do         func()
}

// clock is a queue of events in virtual time.
type clock struct {
	seed       uint64
	now        time.Duration
	events     []*event
	serial     uint64
	foreground int // events that keep the run going
}

// after has something happen some time from now, at the next tick at the
// earliest after 0.
func (c *clock) after(d time.Duration, p tickPhase, do func()) { c.add(d, p, false, do) }

// afterInBackground is after for what happens again and again and keeps no run going.
func (c *clock) afterInBackground(d time.Duration, p tickPhase, do func()) { c.add(d, p, true, do) }

func (c *clock) add(d time.Duration, p tickPhase, idle bool, do func()) {
	c.serial++
	e := &event{at: (c.now + max(d, 0) + tick - 1).Truncate(tick), phase: p, order: c.serial, background: idle, do: do}
	if p == phaseWorld {
		e.order = seeded.Uint64(c.seed^c.serial, "order")
	}
	if !idle {
		c.foreground++
	}
	heap.Push(c, e)
}

// next runs the events of the next tick and tells whether there was one.
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

func (c *clock) Len() int { return len(c.events) }
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
