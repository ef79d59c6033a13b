package live

import (
	"context"
	"sync"
	"time"
)

// lanes make calls side by side. What must hold: the calls of one key are made one after the
// other, in the order in which they were handed out, so that one that hangs holds up no call of
// another key.
type lanes[K comparable] struct {
	mu      sync.Mutex
	waiting map[K][]laneCall // guarded by mu; of each key that has a goroutine, the first is being made
}

// laneCall is a call that begins when it is the first of its key, after is closed or longestAfter
// has passed, and slots has room.
type laneCall struct {
	after <-chan struct{} // nil when it waits for nothing
	slots chan struct{}   // a token for each call that is under way, of those that share it
	do    func(context.Context)
}

// longestAfter is how long a call waits for another one at most: that one's connection may hang.
const longestAfter = 10 * time.Second

func newLanes[K comparable]() lanes[K] { return lanes[K]{waiting: map[K][]laneCall{}} }

// add makes a call after those of its key that were added before.
func (l *lanes[K]) add(ctx context.Context, wg *sync.WaitGroup, key K, call laneCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list, served := l.waiting[key]
	l.waiting[key] = append(list, call)
	if !served {
		wg.Go(func() { l.serve(ctx, key, call) })
	}
}

// serve makes the calls of a key, of which call is the first, until none waits.
func (l *lanes[K]) serve(ctx context.Context, key K, call laneCall) {
	for ok := true; ok; call, ok = l.next(key) {
		if call.after != nil {
			select {
			case <-call.after:
			case <-time.After(longestAfter):
			case <-ctx.Done():
				return
			}
		}
		select {
		case call.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		call.do(ctx)
		<-call.slots
	}
}

// next ends the first call of a key and returns the one after it; ok is false when there is
// none, and the key has no goroutine any more.
func (l *lanes[K]) next(key K) (call laneCall, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.waiting[key][1:]
	if len(list) == 0 {
		delete(l.waiting, key)
		return laneCall{}, false
	}
	l.waiting[key] = list
	return list[0], true
}
