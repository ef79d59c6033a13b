package leader

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestAFenceIsOpenAsLongAsTheLeaseIsHeldForCertain follows one through renewals that come in
// time, late and not at all. A Lease lets write for 10 seconds.
func TestAFenceIsOpenAsLongAsTheLeaseIsHeldForCertain(t *testing.T) {
	const valid = 10 * time.Second
	type event struct {
		after  time.Duration // since the event before
		happen func(f *Fence)
		open   bool // right after
	}
	nothing := func(*Fence) {}
	renew := func(f *Fence) { f.Renew(time.Now(), valid) }
	tookAMinute := func(f *Fence) { f.Renew(time.Now().Add(-time.Minute), valid) }
	for _, x := range []struct {
		name   string
		events []event
	}{
		{"before the first renewal", []event{{time.Hour, nothing, false}}},
		{"no renewal any more", []event{{0, renew, true}, {valid - time.Nanosecond, nothing, true}, {time.Nanosecond, nothing, false}, {time.Hour, nothing, false}}},
		{"renewals in time", []event{{0, renew, true}, {valid - time.Nanosecond, renew, true}, {valid - time.Nanosecond, nothing, true}, {time.Nanosecond, nothing, false}}},
		{"a renewal after the deadline", []event{{0, renew, true}, {valid, nothing, false}, {time.Second, renew, true}, {valid, nothing, false}}},
		{"a first renewal whose answer took a minute", []event{{0, tookAMinute, false}, {time.Second, renew, true}}},
		{"a later renewal whose answer took a minute", []event{{0, renew, true}, {valid, tookAMinute, false}}},
		{"closed for good", []event{{0, renew, true}, {time.Second, (*Fence).Close, false}, {time.Second, renew, false}, {time.Second, (*Fence).Close, false}}},
		{"closed before the first renewal", []event{{0, (*Fence).Close, false}, {time.Second, renew, false}}},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := NewFence()
				for i, e := range x.events {
					time.Sleep(e.after)
					e.happen(f)
					if got := f.Open(); got != e.open {
						t.Errorf("after event %d the fence is open: %t, want %t", i, got, e.open)
					}
				}
				f.Close()
			})
		})
	}
	if !(*Fence)(nil).Open() {
		t.Error("without a Lease nothing may be written")
	}
}

// TestAFenceBelievesTheClockByWhichMoreTimeHasPassed, as after the sleep of a virtual machine,
// which the wall clock shows and the monotonic one doesn't.
func TestAFenceBelievesTheClockByWhichMoreTimeHasPassed(t *testing.T) {
	f := NewFence()
	f.Renew(time.Now(), time.Hour)
	if !f.Open() {
		t.Error("closed right after a renewal")
	}
	f.renewed = f.renewed.Round(0).Add(-2 * time.Hour) // by the wall clock alone, it is two hours since
	if f.Open() {
		t.Error("open, though the deadline is over by the wall clock")
	}
	f.Close()
}

// TestAWriteIsCancelledWhenTheFenceCloses and not when the Lease is renewed meanwhile.
func TestAWriteIsCancelledWhenTheFenceCloses(t *testing.T) {
	for _, x := range []struct {
		name   string
		happen func(f *Fence, stop func())
		want   error // nil when the write goes on
	}{
		{"the deadline", func(*Fence, func()) { time.Sleep(10 * time.Second) }, errOverdue},
		{"a renewal before it", func(f *Fence, _ func()) {
			time.Sleep(9 * time.Second)
			f.Renew(time.Now(), 10*time.Second)
			time.Sleep(9 * time.Second)
		}, nil},
		{"the Lease is lost", func(f *Fence, _ func()) { f.Close() }, ErrNotLeading},
		{"the caller gives up", func(_ *Fence, stop func()) { stop() }, context.Canceled},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := NewFence()
				f.Renew(time.Now(), 10*time.Second)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				write, leave, err := f.Enter(ctx)
				if err != nil {
					t.Fatal(err)
				}
				x.happen(f, stop)
				synctest.Wait()
				if got := context.Cause(write); !errors.Is(got, x.want) {
					t.Errorf("the write ended with %v, want %v", got, x.want)
				}
				leave()
				if write.Err() == nil {
					t.Error("the context outlives the write")
				}
				f.Close()
			})
		})
	}
}

// TestWhoFindsTheFenceClosedWaits until it opens, is closed for good, or isn't asked any more.
func TestWhoFindsTheFenceClosedWaits(t *testing.T) {
	for _, x := range []struct {
		name   string
		happen func(f *Fence, stop func())
		want   error
	}{
		{"a renewal", func(f *Fence, _ func()) { f.Renew(time.Now(), time.Second) }, nil},
		{"the Lease is lost", func(f *Fence, _ func()) { f.Close() }, ErrNotLeading},
		{"the caller gives up", func(_ *Fence, stop func()) { stop() }, context.Canceled},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := NewFence()
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				entered := make(chan error, 1)
				go func() {
					_, leave, err := f.Enter(ctx)
					if err == nil {
						leave()
					}
					entered <- err
				}()
				time.Sleep(time.Hour)
				if len(entered) > 0 {
					t.Fatalf("it didn't wait: %v", <-entered)
				}
				x.happen(f, stop)
				if err := <-entered; !errors.Is(err, x.want) {
					t.Errorf("got %v, want %v", err, x.want)
				}
				f.Close()
			})
		})
	}
}
