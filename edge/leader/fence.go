package leader

import (
	"context"
	"errors"
	"sync"
	"time"
)

// This file answers "may this process write now?". Everything that changes the cluster asks:
// API requests at the connection (fence_http.go), calls of a provider and of extenders right
// before they are made (edge/live/fence_calls.go).
//
// What must hold: this process begins no write later than the renew deadline after it began
// the last successful renewal of its Lease, and a write that is under way then is cancelled.
// Another Berth takes the Lease when it has seen no renewal for the whole duration of the
// Lease, which is longer: the difference is what a cancelled write has to come to rest.
//
// What this can't exclude: a process that is stopped between the question and the system call
// that sends the bytes sends them when it goes on; and a write that has left the process may
// be carried out late by whoever received it. What is written names the UID or the version
// that it is meant for wherever the API allows that.

// Fence is open while the Lease is held for certain. It closes by itself when the Lease isn't
// renewed in time, opens with the next renewal, and stays closed after Close. Whoever wants to
// write while it is closed waits. Its methods may be called by several goroutines; a nil Fence
// is always open, for a process that holds no Lease.
type Fence struct {
	mu      sync.Mutex
	closed  bool          // for good; guarded by mu
	renewed time.Time     // when the last successful renewal began; guarded by mu
	valid   time.Duration // how long it lets write; guarded by mu
	// term ends when the fence closes; nil before the first renewal. Guarded by mu.
	term    context.Context
	endTerm context.CancelCauseFunc
	timer   *time.Timer // fires at the deadline; nil before the first renewal. Guarded by mu.
	// changed is closed, and replaced, when the fence opens or is closed for good. Guarded by mu.
	changed chan struct{}
}

var (
	errOverdue = errors.New("the Lease was not renewed in time; nothing is written until it is")
	// ErrNotLeading is the outcome of a write by a process that has lost the Lease or has given
	// it up.
	ErrNotLeading = errors.New("this process no longer holds the Lease")
)

// NewFence returns a fence that opens with the first renewal.
func NewFence() *Fence { return &Fence{changed: make(chan struct{})} }

// Renew lets write until valid has passed since began: when a renewal of the Lease was begun
// that has succeeded. If that is over already, because the answer was late or the process was
// stopped meanwhile, the fence stays closed.
func (f *Fence) Renew(began time.Time, valid time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.renewed, f.valid = began, valid
	left := f.left()
	if left <= 0 {
		return
	}
	if f.term == nil || f.term.Err() != nil {
		f.term, f.endTerm = context.WithCancelCause(context.Background())
	}
	if f.timer == nil {
		f.timer = time.AfterFunc(left, f.expire)
	} else {
		f.timer.Reset(left)
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// Close closes the fence for good. Writes that are under way are cancelled, and those that
// wait fail.
func (f *Fence) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.closed = true
	if f.term != nil {
		f.timer.Stop()
		f.endTerm(ErrNotLeading)
	}
	close(f.changed)
}

// Open reports whether this process may write now.
func (f *Fence) Open() bool {
	if f == nil {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open()
}

// Enter waits until the fence is open, and returns the context for one write: it ends when the
// fence closes, and with ctx. leave is to be called when the write is over. An error says that
// ctx has ended, or that the fence is closed for good.
func (f *Fence) Enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	if f == nil {
		return ctx, func() {}, nil
	}
	for {
		term, changed, err := f.currentTerm()
		if err != nil {
			return nil, nil, err
		}
		if term != nil {
			ctx, cancel := context.WithCancelCause(ctx)
			stop := context.AfterFunc(term, func() { cancel(context.Cause(term)) })
			return ctx, func() { stop(); cancel(nil) }, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

// currentTerm returns the term in which this process may write, or nil and what tells when to look
// again.
func (f *Fence) currentTerm() (term context.Context, changed <-chan struct{}, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return nil, nil, ErrNotLeading
	case f.open():
		return f.term, nil, nil
	case f.term != nil:
		f.endTerm(errOverdue) // the timer may not have fired yet
	}
	return nil, f.changed, nil
}

// open is Open for whoever holds mu.
func (f *Fence) open() bool { return !f.closed && f.term != nil && f.term.Err() == nil && f.left() > 0 }

// expire ends the term, unless the Lease was renewed when the timer had fired already.
func (f *Fence) expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if left := f.left(); left > 0 && !f.closed {
		f.timer.Reset(left)
		return
	}
	f.endTerm(errOverdue)
}

// left returns for how long the last renewal still lets write, 0 or less for not at all. It
// reads two clocks and believes the one by which more time has passed. The monotonic one goes on
// while a process is stopped, whoever sets the wall clock, but on Linux not while the machine
// sleeps; the wall clock has the sleep, too, as soon as somebody has set it after a virtual
// machine was resumed. Until then, such a machine doesn't know that time has passed.
func (f *Fence) left() time.Duration {
	now := time.Now()
	return f.valid - max(now.Sub(f.renewed), now.Round(0).Sub(f.renewed.Round(0)))
}
