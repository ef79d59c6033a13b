package live

import (
	"sync"

	"github.com/berthproject/berth/core/step"
)

// inbox gathers inputs between two Steps, in the order in which they were put. Any
// goroutine may put; nobody waits for the loop that takes.
type inbox struct {
	mu     sync.Mutex
	inputs []step.Input // guarded by mu
	// signal holds one token when there may be inputs that weren't taken.
	signal chan struct{}
}

func newInbox() *inbox { return &inbox{signal: make(chan struct{}, 1)} }

// put adds an input and wakes the loop.
func (b *inbox) put(in step.Input) { b.putTogether(in) }

// putTogether adds inputs that no Step may see one without the other, and wakes the loop.
func (b *inbox) putTogether(inputs ...step.Input) {
	b.mu.Lock()
	b.inputs = append(b.inputs, inputs...)
	b.mu.Unlock()
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

// waits reports whether there are inputs that weren't taken.
func (b *inbox) waits() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.inputs) > 0
}

// take returns all inputs, and empties the inbox.
func (b *inbox) take() []step.Input {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.inputs
	b.inputs = nil
	return out
}
