// Package lifecycle is what the lifecycle machines below it share. A lifecycle
// machine follows one kind of thing from its beginning to its end: a pod on its way
// to a binding, a preemption, a nomination, a node group, a node that is being
// deleted, what is reported to people.
//
// A machine owns its fields: nobody else writes them. It shares with the others only
// the cluster state and the queue, which it reaches through a Turn. At the head of
// each machine's package stand its states and transitions as a table.
package lifecycle

import (
	"slices"
	"time"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/step"
)

// Machine is what every lifecycle machine offers to the core.
type Machine interface {
	// Advance does what is due at t.Now without another input.
	Advance(t *Turn)
	// NextWake returns when Advance next has something to do, zero when only an
	// input can bring something.
	NextWake() time.Time
	// Unsettled says, a line each, what the machine still waits for or holds. In a
	// cluster at rest there is none.
	Unsettled() []string
	// Invariants says, a line each, what must be true of the machine's fields and
	// isn't. Tests call it after every Step; it returns none unless Berth has a
	// defect.
	Invariants() []string
}

// Turn is what a machine works with while the core takes an input or a Step: the
// time, what all machines share, and the work that this Step asks for. The core
// makes it; a machine must not keep it beyond the call.
type Turn struct {
	Now   time.Time
	State *cluster.State
	Queue *queue.Queue
	Ready *step.Ready // the work so far; machines append to it
	// decisions counts the decisions since the core was made.
	decisions uint64
	usual     int // how many there were in the last Step that made any; room is made for as many
	server    serverClock
}

// Decide enters a decision into the ledger, with the next number, the time, and,
// unless the caller has set it, the state's position.
func (t *Turn) Decide(d step.Decision) {
	t.decisions++
	d.Seq, d.Time = t.decisions, t.Now
	if d.Position == 0 {
		d.Position = uint64(t.State.Head())
	}
	if list := t.Ready.Decisions; len(list) == cap(list) {
		// Append alone grows a long list by a quarter, and a Step may decide 50,000 things.
		t.Ready.Decisions = slices.Grow(list, max(t.usual, len(list)))
	}
	t.Ready.Decisions = append(t.Ready.Decisions, d)
}

// Flush returns the work so far, and begins anew.
func (t *Turn) Flush() step.Ready {
	r := *t.Ready
	*t.Ready = step.Ready{}
	if n := len(r.Decisions); n > 0 {
		t.usual = n
	}
	return r
}

// Emit hands out an event about an object.
func (t *Turn) Emit(e step.Event) { t.Ready.Events = append(t.Ready.Events, e) }

// Earliest returns the earlier of two times of waking; zero means never.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Latest returns the later of two times.
func Latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// CallState is how far a call to the provider is. A call that failed may have been carried out
// all the same, with only its answer lost; one without an answer may be carried out still.
type CallState uint8

// The states of a call.
const (
	NotCalled  CallState = iota
	Called               // its outcome is owed
	InDoubt              // it failed; the provider's next list of instances settles what became of it
	Unanswered           // it had no answer; the provider's next lists of instances settle likewise
	Done                 // it was carried out
)

// String says the state in words.
func (s CallState) String() string {
	return [...]string{"not called", "called", "in doubt", "unanswered", "done"}[s]
}
