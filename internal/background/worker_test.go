package background

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func TestComputationsAreMadeOneAfterTheOther(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	w := Start(ctx)
	var order []int // written by the worker alone
	for i := range 3 {
		w.Do(ctx, func() { order = append(order, i) })
	}
	done := make(chan []int)
	w.Do(ctx, func() { done <- order })
	if got := <-done; len(got) != 3 || got[0] != 0 || got[1] != 1 || got[2] != 2 {
		t.Errorf("computations ended in the order %v, want 0, 1, 2", got)
	}
	stop()
	for range 4 { // more than may wait
		w.Do(ctx, func() {}) // returns, though nobody computes any more
	}
}

func TestTheCollectorWaitsWhileSomethingIsComputed(t *testing.T) {
	const mb = 1 << 20
	tests := []struct {
		name        string
		usual       int
		live        int64
		want, later int // later: after a collection that finds ten times as much in use
	}{
		{"little lives", 100, 20 * mb, 200, 128},
		{"some lives", 100, 160 * mb, 160, 100},
		{"much lives", 100, 1000 * mb, 100, 100},
		{"nothing lives", 100, 0, 200, 200},
		{"more is allowed already", 500, 10 * mb, 500, 500},
		{"it is switched off", -1, 10 * mb, -1, -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var live, percent atomic.Int64
			live.Store(tt.live)
			percent.Store(int64(tt.usual))
			c := newCollector()
			defer c.restoring.Stop()
			c.after = time.Hour // the test restores
			c.live = func() uint64 { return uint64(live.Load()) }
			c.percent = func() int { return int(percent.Load()) }
			c.set = func(to int) { percent.Store(int64(to)) }
			check := func(when string, want int) {
				t.Helper()
				if got := c.percent(); got != want {
					t.Errorf("%s the percentage is %d, want %d", when, got, want)
				}
			}
			c.begin()
			check("while something is computed", tt.want)
			c.restore() // comes late from the computation before
			check("after a late restore", tt.want)
			live.Store(10 * tt.live)
			for range 1000 {
				runtime.GC() // cleanups run after it, in a goroutine of the runtime
				if runtime.Gosched(); c.percent() == tt.later {
					break
				}
			}
			check("after a collection", tt.later)
			c.end()
			check("until restored", tt.later)
			c.restore()
			check("restored", tt.usual)
			runtime.GC()
			check("a collection later", tt.usual)
		})
	}
}
