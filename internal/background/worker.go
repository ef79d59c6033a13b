// Package background makes long computations beside a loop that others wait for.
//
// With two processors, a computation that lasts 0.1 s delays the loop by two mechanisms, each of
// which costs up to 4 ms per wake-up where the kernel's tick is 250 Hz:
//
//   - a thread that becomes ready to run on a processor that is busy may wait there until the next
//     tick, although the other processor has become idle meanwhile;
//   - while the garbage collector runs it occupies the second processor.
//
// So computations yield their processor every now and then, and while they are made the collector
// may start later.
package background

import (
	"context"
	"runtime"
	"time"
)

const (
	// yieldEvery is how long a computation goes on, at least, before it yields.
	yieldEvery = 100 * time.Microsecond
	// longYield is how long a yield takes, at least, when another program has had a turn. A loop
	// is done sooner.
	longYield = 500 * time.Microsecond
	// perYield is how many times as long as a long yield took the computation then goes on: where
	// other programs want all processors, it would otherwise get a fortieth of one.
	perYield = 10
)

// Worker makes one computation after the other. A process has one Worker at most, since the
// garbage collector's settings, which it changes, are the process's.
type Worker struct {
	work      chan func()
	collector *collector

	// Of Yield, by the worker's goroutine alone.
	now   func() time.Time
	yield func()
	next  time.Time // no yield before
}

// Start starts a worker. It ends with the context; a computation that is under way then is
// finished, and nobody waits for it.
func Start(ctx context.Context) *Worker {
	w := newWorker(time.Now, yieldThread)
	go w.run(ctx)
	return w
}

func newWorker(now func() time.Time, yield func()) *Worker {
	return &Worker{work: make(chan func(), 1), collector: newCollector(), now: now, yield: yield}
}

// Do calls compute after what was given before, in another goroutine than the caller's. It
// doesn't wait, unless two computations wait already.
func (w *Worker) Do(ctx context.Context, compute func()) {
	select {
	case w.work <- compute:
	case <-ctx.Done():
	}
}

// Yield is for a computation to call every few microseconds: it lets other threads run that wait
// for its processor, at most once in yieldEvery. Another goroutine must not call it.
func (w *Worker) Yield() {
	before := w.now()
	if before.Before(w.next) {
		return
	}
	w.yield()
	after := w.now()
	w.next = after.Add(yieldEvery)
	if took := after.Sub(before); took > longYield {
		w.next = after.Add(perYield * took)
	}
}

// run is the worker's goroutine. It keeps its thread, so that no other goroutine queues behind it.
func (w *Worker) run(ctx context.Context) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		select {
		case compute := <-w.work:
			w.collector.begin()
			compute()
			w.collector.end()
		case <-ctx.Done():
			return
		}
	}
}
