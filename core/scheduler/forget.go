package scheduler

// This file says when classes are forgotten, and what the state has interned for them. A class
// that no pod has is worth keeping: the next pod of a ReplicaSet or a Job has it again. But
// whoever may create pods may have new ones made without end.
//
// Looking for what nobody needs takes O(classes + pods). It is done when there is more than
// Scheduler.Kept, or much more than after the last time; and, where that much is needed, only when it has
// grown by half or some time has passed. So it costs O(1) for each class that is made.

import (
	"time"

	"github.com/berthproject/berth/core/engine"
)

// DefaultKept returns how much each engine may hold before the classes are forgotten that
// nobody needs.
func DefaultKept() engine.Size { return engine.Size{Classes: 4096, Columns: 512, KeyBytes: 1 << 20} }

// internedKept is how many terms and topologies a state may hold before those are forgotten
// that nobody needs.
const internedKept = 512

// forgetEvery is how often classes are looked for that nobody needs while there are more than
// Scheduler.Kept.
const forgetEvery = 10 * time.Second

// forgot is what was left when classes were forgotten last.
type forgot struct {
	at       time.Time
	left     map[string]engine.Size // by engine
	interned int
}

// ForgetClasses forgets the classes that aren't in use, with the terms and topologies that nobody
// needs then, when there is much of either. A class that was forgotten must not be used again.
// inUse is called when it comes to that.
func (s *Scheduler) ForgetClasses(now time.Time, inUse func() map[*engine.Class]bool) {
	if s.muchToForget(now) {
		s.forget(now, inUse())
	}
}

// ForgetAllClasses forgets all classes, for a scheduler that is asked once in a while.
func (s *Scheduler) ForgetAllClasses() { s.sweep(nil) }

func (s *Scheduler) muchToForget(now time.Time) bool {
	if n := s.state.Interned(); n > internedKept && n > 2*s.forgot.interned {
		return true
	}
	for _, name := range s.names {
		size, left := s.engines[name].Size(), s.forgot.left[name]
		if exceeds(size, s.Kept) && (exceeds(size, left.Times(1.5)) || !now.Before(s.forgot.at.Add(forgetEvery))) {
			return true
		}
	}
	return false
}

// exceeds tells whether there is more of anything than the limit has.
func exceeds(size, limit engine.Size) bool {
	return size.Classes > limit.Classes || size.Columns > limit.Columns || size.KeyBytes > limit.KeyBytes
}

func (s *Scheduler) sweep(used map[*engine.Class]bool) {
	for _, name := range s.names {
		s.engines[name].Sweep(func(c *engine.Class) bool { return used[c] })
	}
}

func (s *Scheduler) forget(now time.Time, used map[*engine.Class]bool) {
	s.sweep(used)
	s.forgot = forgot{at: now, left: map[string]engine.Size{}}
	for _, name := range s.names {
		s.forgot.left[name] = s.engines[name].Size()
	}
	s.state.Forget()
	s.forgot.interned = s.state.Interned()
}
