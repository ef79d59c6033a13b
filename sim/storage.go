package sim

import (
	"container/heap"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berthproject/berth/sim/scenario"
)

// storage shares a rate of writing among flows, max-min fairly: each writer of a flow gets
// the same share, no flow gets more than its own limit, and what a limited flow leaves
// the others share. With more writers than the knee the whole rate falls.
//
// Flows of equal limit and streams advance equally, so they are one class, and a change
// costs O(classes² + log flows). What must hold: advance comes before each change of a
// rate, and share after each change of the flows.
type storage struct {
	clock   *clock
	rate    float64 // bytes a second, +Inf for no limit
	knee    float64 // in writers, 0 for none
	power   float64
	classes []*flowClass  // in the order in which they were made
	updated time.Duration // up to when the classes' done goes
	serial  uint64        // of the last flow
	wake    uint64        // of the last wake-up that was set: earlier ones do nothing
	peak    float64       // highest rate of all flows together, bytes a second
}

// A class stays when its flows are done: others like them come again.
type flowClass struct {
	limit, streams float64 // of each flow: bytes a second, writers
	rate           float64 // of each flow, bytes a second
	done           float64 // bytes that a flow would have written that was there from the beginning
	flows          []*flow // a heap by end
}

// flow is one writing.
// It is finished when its class's done reaches end.
type flow struct {
	class *flowClass
	end   float64 // the class's done at which it is finished
	order uint64
	at    int // in its heap, -1 when it is finished or stopped
	then  func()
}

// Without a rate in the scenario the storage is as fast as its writers.
func newStorage(c *clock, s scenario.Storage) *storage {
	out := &storage{clock: c, rate: math.Inf(1), knee: s.Knee, power: 1}
	if s.SharedRate != nil {
		out.rate = s.SharedRate.AsApproximateFloat64()
	}
	if s.Collapse > 0 {
		out.power = s.Collapse
	}
	return out
}

// bytesOf returns a quantity in bytes, 0 for nil.
func bytesOf(q *resource.Quantity) float64 {
	if q == nil {
		return 0
	}
	return q.AsApproximateFloat64()
}

// limitOf returns the least of the rates that aren't nil, +Inf for none.
func limitOf(rates ...*resource.Quantity) float64 {
	out := math.Inf(1)
	for _, q := range rates {
		if q != nil {
			out = min(out, q.AsApproximateFloat64())
		}
	}
	return out
}

// write begins to write bytes, at limit bytes a second at most, with as many writers as
// streams, and calls then when it is finished.
// then is called from the event queue, never from within write.
func (s *storage) write(bytes, limit, streams float64, then func()) *flow {
	// Nothing to write, or nothing to slow it down.
	if bytes <= 0 || math.IsInf(s.rate, 1) && math.IsInf(limit, 1) {
		s.clock.after(0, phaseWorld, then)
		return &flow{at: -1}
	}
	s.advance()
	var class *flowClass
	for _, c := range s.classes {
		if c.limit == limit && c.streams == streams {
			class = c
		}
	}
	if class == nil {
		class = &flowClass{limit: limit, streams: streams}
		s.classes = append(s.classes, class)
	}
	s.serial++
	f := &flow{class: class, end: class.done + bytes, order: s.serial, then: then}
	heap.Push(class, f)
	s.share()
	return f
}

// stop ends a flow without calling back; nil and finished flows too.
// It may be called more than once.
func (s *storage) stop(f *flow) {
	if f == nil || f.at < 0 {
		return
	}
	s.advance()
	heap.Remove(f.class, f.at)
	s.share()
}

// advance brings the classes' done up to now.
// It is what makes the time between two changes count.
func (s *storage) advance() {
	dt := (s.clock.now - s.updated).Seconds()
	s.updated = s.clock.now
	for _, c := range s.classes {
		if len(c.flows) > 0 {
			// The conversion keeps the product from being fused with the sum, so that the
			// result is the same on every kind of processor.
			c.done += float64(c.rate * dt)
		}
	}
}

// share divides the rate among the flows and sets the wake-up at which the next of them
// is finished.
func (s *storage) share() {
	var writers float64
	for _, c := range s.classes {
		writers += float64(float64(len(c.flows)) * c.streams)
		c.rate = -1
	}
	// Beyond the knee the storage as a whole gets slower.
	left := s.rate
	if s.knee > 0 && writers > s.knee {
		left *= math.Pow(s.knee/writers, s.power)
	}
	// Water-filling: a class that a fair share satisfies gets its limit, and the others
	// share what it leaves.
	for again := true; again; {
		again = false
		share := left / writers
		for _, c := range s.classes {
			n := float64(len(c.flows))
			if c.rate < 0 && n > 0 && c.limit <= share*c.streams {
				// The class takes less than its share.
				c.rate = c.limit
				left -= float64(c.limit * n)
				writers -= float64(c.streams * n)
				again = true
				break
			}
		}
	}
	var total float64
	next := math.Inf(1)
	for _, c := range s.classes {
		if len(c.flows) == 0 {
			continue
		}
		if c.rate < 0 {
			c.rate = left / writers * c.streams
		}
		total += float64(c.rate * float64(len(c.flows)))
		// The flow that ends first is the head of its class's heap.
		next = min(next, (c.flows[0].end-c.done)/c.rate)
	}
	s.peak = max(s.peak, total)
	if math.IsInf(next, 1) {
		return
	}
	// The number makes wake-ups that were set before do nothing.
	s.wake++
	wake := s.wake
	s.clock.after(time.Duration(min(max(next, 0), 1e9)*float64(time.Second))+tick, phaseWorld, func() {
		if wake == s.wake {
			s.finish()
		}
	})
}

// finish ends the flows that have written everything, and calls back.
// Rates are shared anew before anybody is called back: a callback may write again.
func (s *storage) finish() {
	s.advance()
	var finished []*flow
	for _, c := range s.classes {
		for len(c.flows) > 0 && c.flows[0].end <= c.done {
			finished = append(finished, heap.Pop(c).(*flow))
		}
	}
	s.share()
	for _, f := range finished {
		f.then()
	}
}

func (c *flowClass) Len() int { return len(c.flows) }

// Less orders flows by when they end, and by when they began: no two are equal.
func (c *flowClass) Less(i, j int) bool {
	return c.flows[i].end < c.flows[j].end || c.flows[i].end == c.flows[j].end && c.flows[i].order < c.flows[j].order
}
func (c *flowClass) Swap(i, j int) {
	c.flows[i], c.flows[j] = c.flows[j], c.flows[i]
	c.flows[i].at, c.flows[j].at = i, j
}
func (c *flowClass) Push(x any) {
	f := x.(*flow)
	f.at = len(c.flows)
	c.flows = append(c.flows, f)
}
func (c *flowClass) Pop() any {
	last := len(c.flows) - 1
	f := c.flows[last]
	c.flows[last] = nil
	c.flows = c.flows[:last]
	f.at = -1
	return f
}
