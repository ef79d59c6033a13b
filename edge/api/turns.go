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
	making chan struct{} // has a token for each answer that is being made
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

// place is a place among those who have an answer made. It is for one request, in one goroutine; a nil place is of somebody who
// needs none, as a stream.
type place struct {
	among chan struct{} // has a token for each answer that is being made
	held  bool
}

// take waits for the place; false says that the context ended before.
func (p *place) take(ctx context.Context) bool {
	if p == nil || p.held {
		return true
	}
	select {
	case p.among <- struct{}{}:
		p.held = true
	case <-ctx.Done():
	}
	return p.held
}

// leave gives the place to others, until it is taken again.
func (p *place) leave() {
	if p != nil && p.held {
		<-p.among
		p.held = false
	}
}

// placeKey is the key of a place in a context.
type placeKey struct{}

// placeOf returns the place of a request, nil for none.
func placeOf(ctx context.Context) *place {
	p, _ := ctx.Value(placeKey{}).(*place)
	return p
}
