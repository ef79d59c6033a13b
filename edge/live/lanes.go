package live

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// This file says which calls of a provider are made at the same time. What must hold: the
// calls of one node group are made one after the other, in the order in which they were
// handed out; those of different groups side by side, so that a group whose calls hang
// holds up no other.

// cloudWorkers is how many groups are called at a time.
const cloudWorkers = 16

// cloudCall is a call about one node group.
type cloudCall struct {
	group string
	do    func(context.Context) // returns when the outcome, if one is owed, was reported
	// after is called when the group no longer counts as being called; it may be nil.
	after func()
}

// lanes are the calls of all groups.
type lanes struct {
	slots chan struct{} // a token for each group that is called

	mu      sync.Mutex
	waiting map[string][]cloudCall // guarded by mu; of each group that has a goroutine
	calling map[string]bool        // guarded by mu; groups of which a call is under way
	// touched are the groups of which a call was under way at any time since the list
	// of groups is being read; nil while it isn't. Guarded by mu.
	touched map[string]bool
}

func newLanes() lanes {
	return lanes{slots: make(chan struct{}, cloudWorkers), waiting: map[string][]cloudCall{}, calling: map[string]bool{}}
}

// add has a call made after those of its group that were added before.
func (l *lanes) add(ctx context.Context, wg *sync.WaitGroup, call cloudCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list, served := l.waiting[call.group]
	l.waiting[call.group] = append(list, call)
	if !served {
		wg.Go(func() { l.serve(ctx, call.group) })
	}
}

// serve makes the calls of a group until none waits.
func (l *lanes) serve(ctx context.Context, group string) {
	for {
		select {
		case l.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		call, ok := l.begin(group)
		if ok {
			call.do(ctx)
			l.end(group)
			if call.after != nil {
				call.after()
			}
		}
		<-l.slots
		if !ok {
			return
		}
	}
}

// begin takes the next call of a group; ok is false when there is none, and the group is no
// longer served.
func (l *lanes) begin(group string) (call cloudCall, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.waiting[group]
	if len(list) == 0 {
		delete(l.waiting, group)
		return cloudCall{}, false
	}
	l.waiting[group] = list[1:]
	l.calling[group] = true
	if l.touched != nil {
		l.touched[group] = true
	}
	return list[0], true
}

func (l *lanes) end(group string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.calling, group)
}

// beginList has the groups noted that are called from now on.
func (l *lanes) beginList() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.touched = maps.Clone(l.calling)
}

// endList calls f with the groups that were called since beginList, sorted. No call begins
// before f returns: its outcome comes after what f gives to the core.
func (l *lanes) endList(f func(busy []string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	busy := slices.Sorted(maps.Keys(l.touched))
	l.touched = nil
	f(busy)
}
