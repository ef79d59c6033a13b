package api

import (
	"context"
	"sync"
)

// This file bounds how many answers are made at a time: of one user, and of all.

// turns let each user have few answers made at a time. Who asks for much waits for himself before he waits for the
// others, and they don't wait for him.
type turns struct {
	mu sync.Mutex
	of map[string]*turn // of users with a request under way
}

// turn is the requests of one user.
type turn struct {
	making chan struct{} // bounds how many answers are made at a time: each takes a token
	users  int           // requests that wait for a token or have one; guarded by turns.mu
}

// newTurns returns turns of nobody.
func newTurns() *turns { return &turns{of: map[string]*turn{}} }

// begin waits until it is a user's turn. end is to be called when the answer is made; ok is false when the context
// ended before.
func (t *turns) begin(ctx context.Context, user string) (end func(), ok bool) {
	t.mu.Lock()
	// Requests without a user, as where nothing is authenticated, share one turn.
	mine := t.of[user]
	if mine == nil {
		mine = &turn{making: make(chan struct{}, maxRenderingOfUser)}
		t.of[user] = mine
	}
	mine.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		// Names of users are anybody's: none is kept for its own sake.
		if mine.users--; mine.users == 0 {
			delete(t.of, user)
		}
	}
	select {
	case mine.making <- struct{}{}:
		return func() { <-mine.making; leave() }, true
	case <-ctx.Done():
		leave()
		return nil, false
	}
}

// slot is one of the few answers that are made at a time. It is for one request, in one goroutine; requests that need none, as
// a stream, have nil.
type slot struct {
	among chan struct{} // the tokens of all slots
	held  bool
}

// take waits for a slot; false says that the context ended before.
func (s *slot) take(ctx context.Context) bool {
	if s == nil || s.held {
		return true
	}
	select {
	case s.among <- struct{}{}:
		s.held = true
	case <-ctx.Done():
	}
	return s.held
}

// leave gives the slot to others, until it is taken again.
func (s *slot) leave() {
	if s != nil && s.held {
		<-s.among
		s.held = false
	}
}

// slotKey is the key of a slot in a context.
type slotKey struct{}

// slotOf returns the slot of a request, nil for none.
func slotOf(ctx context.Context) *slot {
	p, _ := ctx.Value(slotKey{}).(*slot)
	return p
}
