package api

import (
	"context"
	"slices"
	"sync"
	"time"
)

// This file says which question is put to the core next, once the core has had its time.
//
// What must hold: a user's question waits for one turn at most of each other user, however many questions these have; the
// question that goes first waits for one turn at most; and no other waits for it twice in a row. The choice is made when
// the core may be asked and not before, so that whoever comes meanwhile takes part in it. How many questions wait is
// bounded by the requests of each user (maxRenderingOfUser), and for how long by questionTimeout.

// keptTurns is for how many users it is remembered when they had their last turn.
const keptTurns = 1024

// line is the questions that wait for the core.
type line struct {
	now func() time.Time
	// first is the key of the question that goes ahead of all others: viewers follow the cluster by it. It counts as no user's
	// turn, since it is of all viewers.
	first string

	mu      sync.Mutex
	waiting []*waiter // in the order in which they came
	asking  bool      // one has its turn
	timed   bool      // a timer runs until next
	next    time.Time // the core isn't asked before; what it is owed for questions so far is over at next plus ahead
	turns   uint64
	served  map[string]uint64 // when users had their last turn, as a number of turns
	after   string            // key of the last turn
}

// waiter is a question that waits, or has its turn.
type waiter struct {
	key   string
	users []string      // for whom it is asked; guarded by line.mu
	turn  chan struct{} // closed when it has its turn
}

// newLine returns a line in which nothing waits. Questions of the key first go first.
func newLine(now func() time.Time, first string) *line {
	return &line{now: now, first: first, served: map[string]uint64{}}
}

// newWaiter returns a question of a user, which isn't in the line yet.
func newWaiter(key, user string) *waiter {
	return &waiter{key: key, users: []string{user}, turn: make(chan struct{})}
}

// join records that a question is asked for one more user: it comes when the first of its users is next.
func (l *line) join(w *waiter, user string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(w.users, user) {
		w.users = append(w.users, user)
	}
}

// wait waits until a question has its turn; false says that the context ended before. After a turn end must be called.
func (l *line) wait(ctx context.Context, w *waiter) bool {
	l.mu.Lock()
	l.waiting = append(l.waiting, w)
	l.advance()
	l.mu.Unlock()
	select {
	case <-w.turn:
		return true
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, w)
	if i < 0 { // it has got its turn meanwhile
		return true
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	return false
}

// end ends a turn, after which the core is owed some time for itself. The next turns needn't wait for it until more than
// ahead is owed.
func (l *line) end(idle time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if earliest := l.now().Add(-ahead); l.next.Before(earliest) {
		l.next = earliest
	}
	l.asking, l.next = false, l.next.Add(idle)
	l.advance()
}

// advance gives the next question its turn if the core may be asked, and has a timer do that later otherwise. The caller
// holds mu.
func (l *line) advance() {
	if l.asking || l.timed || len(l.waiting) == 0 {
		return
	}
	if wait := l.next.Sub(l.now()); wait > 0 {
		l.timed = true
		time.AfterFunc(wait, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.timed = false
			if now := l.now(); l.next.After(now) { // a clock that stands still, or is set back
				l.next = now
			}
			l.advance()
		})
		return
	}
	best := 0
	for i, w := range l.waiting {
		if l.before(w, l.waiting[best]) {
			best = i
		}
	}
	w := l.waiting[best]
	l.waiting = slices.Delete(l.waiting, best, best+1)
	l.asking, l.after = true, w.key
	l.count(w)
	close(w.turn)
}

// before reports whether a question comes before one that has waited for longer.
func (l *line) before(a, b *waiter) bool {
	if first := a.key == l.first; first != (b.key == l.first) {
		return first == (l.after != l.first)
	}
	return l.last(a) < l.last(b)
}

// last returns when that of a question's users who has waited for longest had the last turn, 0 for never.
func (l *line) last(w *waiter) uint64 {
	last := l.turns
	for _, user := range w.users {
		last = min(last, l.served[user])
	}
	return last
}

// count records a turn as one of all users who have waited for it.
func (l *line) count(w *waiter) {
	if w.key == l.first {
		return
	}
	// Names of users are anybody's. When they are forgotten all are equal once.
	if len(l.served)+len(w.users) > keptTurns {
		clear(l.served)
	}
	l.turns++
	for _, user := range w.users {
		l.served[user] = l.turns
	}
}
