package launching

import (
	"maps"
	"time"
)

// This file is what slowness is measured by.

// bestKept is how long a best time counts at least; twice as long it counts at most. So
// when something has become slower for good, the windows grow again after a while.
const bestKept = 6 * time.Hour

// jitter is added to both times of a comparison: whether a stage took one second or three
// says nothing about load.
const jitter = 10 * time.Second

// bestTimes are the shortest times that stages have taken lately, by what the time of a
// stage depends on when nothing is overloaded: the group, and the images that are pulled.
// The zero value has seen nothing.
type bestTimes struct {
	current, previous map[stage]time.Duration
	began             time.Time // of current
}

// stage is what times are compared of.
type stage struct {
	group  string
	images string // that are pulled; "" for a launch
}

// forget forgets the times of a group.
func (b *bestTimes) forget(group string) {
	for _, times := range [...]map[stage]time.Duration{b.current, b.previous} {
		maps.DeleteFunc(times, func(s stage, _ time.Duration) bool { return s.group == group })
	}
}

// slowness returns how many times as long as at its best a stage took; 1 for a new best.
func (b *bestTimes) slowness(now time.Time, key stage, took time.Duration) float64 {
	if b.current == nil || now.Sub(b.began) > bestKept {
		b.previous, b.current, b.began = b.current, map[stage]time.Duration{}, now
	}
	if best, ok := b.current[key]; !ok || took < best {
		b.current[key] = took
	}
	best := b.current[key]
	if earlier, ok := b.previous[key]; ok {
		best = min(best, earlier)
	}
	return (took + jitter).Seconds() / (best + jitter).Seconds()
}

// best returns the best time from one that was slowness times as long.
func best(took time.Duration, slowness float64) time.Duration {
	return time.Duration(float64((took+jitter).Seconds()/slowness)*float64(time.Second)) - jitter
}
