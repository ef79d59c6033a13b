package live

import (
	"sync"

	"github.com/berthproject/berth/core/step"
)

// inbox gathers inputs between Steps. Order is kept.
type inbox struct {
	mu     sync.Mutex
	inputs []step.Input
	signal chan struct{} // holds one token when there is something
}

func newInbox() *inbox { return &inbox{signal: make(chan struct{}, 1)} }

func (b *inbox) put(in step.Input) {
	b.mu.Lock()
	b.inputs = append(b.inputs, in)
	b.mu.Unlock()
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

func (b *inbox) take() []step.Input {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.inputs
	b.inputs = nil
	return out
}
