package scheduler

// This file says when classes are forgotten, and what the state has interned for them. A class
// that no pod has is worth keeping: the next pod of a ReplicaSet or a Job has it again. But
// whoever may create pods may have new ones made without end.
//
// Of classes that name their nodes that isn't so: the next pod of a DaemonSet names another node. Those
// that nobody needs are forgotten soon, and the others stay.
//
// The memory of columns whose classes are needed is bounded by the engine (core/engine/filled.go).
//
// Looking for what nobody needs takes O(classes + pods). It is done when there is more than
// Scheduler.MaxHeld, or much more than after the last time; and, where that much is needed, only when it has
// grown by half or some time has passed. So it costs O(1) for each class that is made.

import (
	"time"

	"github.com/berthproject/berth/core/engine"
)

// DefaultMaxHeld returns how much each engine may hold before the classes are forgotten that
// nobody needs.
func DefaultMaxHeld() engine.Size { return engine.Size{Classes: 4096, Columns: 512, KeyBytes: 1 << 20} }

// internedKept is how many terms and topologies a state may hold before those are forgotten
// that nobody needs.
const internedKept = 512

// forgetEvery is how often classes are looked for that nobody needs while there are more than
// Scheduler.MaxHeld.
const forgetEvery = 10 * time.Second

// namedKept is how many classes that name their nodes may be made before those that nobody needs are
// looked for, besides half of those that were left the last time; fewer are looked for every forgetEvery.
const namedKept = 256

// forgot is what was left when classes were forgotten last.
type forgot struct {
	at       time.Time
	left     map[string]engine.Size // by engine
	interned int

	byNameAt time.Time // when classes that name their nodes were looked for last,
	byName   int       // and how many were left
}

// ForgetClasses forgets the classes that aren't in use, with the terms and topologies that nobody
// needs then, when there is much of either. A class that was forgotten must not be used again.
// inUse is called when it comes to that.
func (s *Scheduler) ForgetClasses(now time.Time, inUse func() map[*engine.Class]bool) {
	switch n := s.byName(); {
	case s.muchToForget(now):
		s.forget(now, inUse())
	case n > s.forgot.byName+s.forgot.byName/2+namedKept || n > 0 && !now.Before(s.forgot.byNameAt.Add(forgetEvery)):
		used := inUse()
		s.sweep(func(c *engine.Class) bool { return used[c] || !c.ByName() })
		s.forgot.byNameAt, s.forgot.byName = now, s.byName()
	}
}

// byName returns how many classes are held that name their nodes.
func (s *Scheduler) byName() (n int) {
	for _, name := range s.names {
		n += s.engines[name].Size().ByName
	}
	return n
}

// ForgetAllClasses forgets all classes, for a scheduler that is asked once in a while.
func (s *Scheduler) ForgetAllClasses() { s.sweep(func(*engine.Class) bool { return false }) }

func (s *Scheduler) muchToForget(now time.Time) bool {
	if n := s.state.Interned(); n > internedKept && n > 2*s.forgot.interned {
		return true
	}
	for _, name := range s.names {
		size, left := s.engines[name].Size(), s.forgot.left[name]
		if exceeds(size, s.MaxHeld) && (exceeds(size, left.Times(1.5)) || !now.Before(s.forgot.at.Add(forgetEvery))) {
			return true
		}
	}
	return false
}

// exceeds reports whether there is more of anything than the limit has.
func exceeds(size, limit engine.Size) bool {
	return size.Classes > limit.Classes || size.Columns > limit.Columns || size.KeyBytes > limit.KeyBytes
}

func (s *Scheduler) sweep(keep func(*engine.Class) bool) {
	for _, name := range s.names {
		s.engines[name].Sweep(keep)
	}
}

func (s *Scheduler) forget(now time.Time, used map[*engine.Class]bool) {
	s.sweep(func(c *engine.Class) bool { return used[c] })
	s.forgot = forgot{at: now, left: map[string]engine.Size{}, byNameAt: now, byName: s.byName()}
	for _, name := range s.names {
		s.forgot.left[name] = s.engines[name].Size()
	}
	s.state.Forget()
	s.forgot.interned = s.state.Interned()
}
