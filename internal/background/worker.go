// Package background makes long computations beside a loop that others wait for.
//
// With two processors, a computation that lasts 0.1 s delays the loop by two mechanisms, each of
// which costs up to 4 ms per wake-up where the kernel's tick is 250 Hz:
//
//   - the kernel lets a running thread go on until its time slice is over, which it finds out at
//     the next tick, although another thread of the same process, or the process that it waits
//     for, has become ready to run;
//   - while the garbage collector runs it occupies the second processor.
//
// So computations have a thread of their own with a long slice, and while they are made the
// collector may start later.
package background

import (
	"context"
	"runtime"
)

// Worker makes one computation after the other. A process has one Worker at most, since the
// garbage collector's settings, which it changes, are the process's.
type Worker struct {
	work      chan func()
	collector *collector
}

// Start starts a worker. It ends with the context; a computation that is under way then is
// finished, and nobody waits for it.
func Start(ctx context.Context) *Worker {
	w := &Worker{work: make(chan func(), 1), collector: newCollector()}
	go w.run(ctx)
	return w
}

// Do has compute called after what was given before, in another goroutine than the caller's. It
// doesn't wait, unless two computations wait already.
func (w *Worker) Do(ctx context.Context, compute func()) {
	select {
	case w.work <- compute:
	case <-ctx.Done():
	}
}

// run is the worker's goroutine. It never unlocks its thread, so the thread, whose slice others
// shouldn't have, ends with it.
func (w *Worker) run(ctx context.Context) {
	runtime.LockOSThread()
	takeLongSlices()
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
