package lifecycle

import (
	"slices"
	"time"
)

// serverClock estimates the API server's time. Now is by the clock of this process, set when the
// process began, and may be hours off; what the API server creates it stamps by its own. What must
// hold: no single stamp moves the estimate for good, in either direction.
//
// The API server's own answers are the evidence (told). Before the first, and where there are none,
// as in a recording of an earlier version, it is the Node created last: it was created at most Now
// less its creation ago. A creation in the future is none: a clock was wrong when it was stamped.
type serverClock struct {
	told    []time.Duration // how far Now was ahead by the latest answers, the latest last
	created bool
	ahead   time.Duration // how far Now is ahead by what was created, at most
}

const (
	// answersKept is of how many answers the median counts: several API servers may have clocks of
	// their own.
	answersKept = 5
	// mayDiffer is how far clocks may be apart that are both right.
	mayDiffer = time.Minute
)

// Created records when the API server created an object that it shows at Now.
func (t *Turn) Created(at time.Time) {
	ahead := t.Now.Sub(at)
	if at.IsZero() || ahead < -mayDiffer {
		return
	}
	if c := &t.server; !c.created || ahead < c.ahead {
		c.created, c.ahead = true, ahead
	}
}

// ServerTold records what time an answer of the API server that has come at Now bears.
func (t *Turn) ServerTold(at time.Time) {
	if at.IsZero() {
		return
	}
	c := &t.server
	if len(c.told) == answersKept {
		c.told = slices.Delete(c.told, 0, 1)
	}
	c.told = append(c.told, t.Now.Sub(at))
}

// ServerNow returns the API server's time as far as it is known: ages of objects are measured by it.
func (t *Turn) ServerNow() time.Time {
	if told := t.server.told; len(told) > 0 {
		sorted := slices.Sorted(slices.Values(told))
		return t.Now.Add(-sorted[len(sorted)/2])
	}
	return t.Now.Add(-t.server.ahead)
}
