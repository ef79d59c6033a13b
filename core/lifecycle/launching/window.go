package launching

import "time"

// This file is the control law: how many nodes may be in one stage of their launch at a
// time. What must be true: a window is never smaller than leastWindow, and shrinks once in
// a round trip at most.

// The constants of the control law, in nodes where nothing else is said. They are the same
// for every cluster: what differs between infrastructures is measured.
const (
	// firstLaunchWindow and firstPullWindow are what nearly any infrastructure bears.
	firstLaunchWindow, firstPullWindow = 100, 50
	// leastWindow is too small to do harm, and large enough to learn when harm is over.
	leastWindow = 4
	// addedNodes is by how much a window grows in a round trip after its start.
	addedNodes = 25
	// A stage that takes up to fineTime times as long as at its best lets its window grow;
	// one that takes slowTime times as long leaves slowShrink of it.
	fineTime, slowTime = 1.25, 1.5
	slowShrink         = 0.85
	// failureShrink is what failures that are due to load leave of a window.
	failureShrink = 0.5
)

// window is how many nodes may be in a stage at a time.
type window struct {
	size float64
	// starting says that the window grows by a node for each that passes the stage: to
	// twice its size in a round trip. The first slow node ends it.
	starting bool
	shrunk   time.Time // when it shrank last
	slowness float64   // the mean of the latest nodes that passed, 0 before the first
}

// passed records that a node which was ordered at a time passed the stage, in slowness times
// the best time. share is the stage's share of the time since the order; filled says that
// since then the windows have held nodes back.
func (w *window) passed(now, ordered time.Time, slowness, share float64, filled bool) {
	w.slowness += float64((slowness - w.slowness) / timesKept)
	switch {
	case slowness > fineTime:
		w.starting = false
		if slowness >= slowTime {
			w.shrink(now, ordered, slowShrink)
		}
	case ordered.IsZero() || !filled: // what a larger window would do isn't known
	case w.starting:
		w.size++
	default:
		// As many nodes as the window has pass in the time that the stage takes.
		w.size += addedNodes * share / w.size
	}
}

// shrink leaves a part of the window. A node that was ordered before the window shrank last
// is no reason to: that may have been enough.
func (w *window) shrink(now, ordered time.Time, part float64) {
	w.starting = false
	if !ordered.After(w.shrunk) {
		return
	}
	w.size = max(w.size*part, leastWindow)
	w.shrunk = now
}
