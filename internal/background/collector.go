package background

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// restoreAfter is how long after a computation the collector is as it was: to it, computations
	// that follow each other closely are one.
	restoreAfter = time.Second
	// patience is how much garbage there may be, in bytes, before the collector starts while
	// something is computed; as usual where that is more.
	patience = 256 << 20
	// mostPercent bounds that where little lives, in percent of what lives.
	mostPercent = 200
)

// collector makes the garbage collector start later while something is computed: a collection
// occupies the processors that the computation leaves free. Where collection is switched off
// (GOGC=off) it stays so, and a limit of memory (GOMEMLIMIT) holds as before.
type collector struct {
	live    func() uint64     // bytes that the last collection found in use
	percent func() int        // of what lives, how much garbage makes the collector start; -1 when it is switched off
	set     func(percent int) // sets that
	after   time.Duration     // restoreAfter

	mu        sync.Mutex
	computing bool
	deferring bool // the percentage may be another than usual
	usual     int  // what restore sets; valid while deferring
	restoring *time.Timer
}

func newCollector() *collector {
	c := &collector{after: restoreAfter, live: liveBytes, percent: percent, set: func(percent int) { debug.SetGCPercent(percent) }}
	c.restoring = time.AfterFunc(c.after, c.restore)
	return c
}

// begin says that something is computed from now on.
func (c *collector) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.computing = true
	if c.deferring {
		return // each collection adjusts the percentage
	}
	c.usual = c.percent()
	if c.usual < 0 {
		return
	}
	c.deferring = true
	c.adjust()
	c.adjustAfterCollection()
}

// end says that nothing is computed any more.
func (c *collector) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.computing = false
	c.restoring.Reset(c.after)
}

// restore sets the usual percentage unless something is computed. The collector starts at once
// if there is more garbage than that allows.
func (c *collector) restore() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.computing || !c.deferring {
		return
	}
	c.deferring = false
	c.set(c.usual)
}

// adjust sets the percentage by what lives.
func (c *collector) adjust() {
	allowed := patience * 100 / int(max(c.live(), 1<<20))
	if want := max(c.usual, min(allowed, mostPercent)); want != c.percent() {
		c.set(want)
	}
}

// adjustAfterCollection calls adjust after each collection as long as the collector is
// deferring, since what lives may grow a hundredfold during one computation.
func (c *collector) adjustAfterCollection() {
	type collected struct{ _ *int } // with a pointer: the memory of those without is shared
	runtime.AddCleanup(new(collected), func(c *collector) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.deferring {
			c.adjust()
			c.adjustAfterCollection()
		}
	}, c)
}

// percent returns the percentage that is in force in this process.
func percent() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	if p := sample[0].Value.Uint64(); p <= 1<<31 {
		return int(p)
	}
	return -1
}

// liveBytes returns how many bytes the last collection found in use.
func liveBytes() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
