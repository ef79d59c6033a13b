package live

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/berthproject/berth/core/step"
)

// This file says which calls of a provider are made at the same time: those of one node group
// one after the other, those of different groups side by side (lanes). Deletions of nodes of a
// group that wait behind another call of it go in one call.

// cloudWorkers is how many groups are called at a time.
const cloudWorkers = 16

// cloudCall is a call about one node group.
type cloudCall struct {
	group string
	// do returns when the outcomes that are owed were reported. deletions are those of the call.
	do func(ctx context.Context, deletions []deletion)
	// after is called when the group no longer counts as being called; it may be nil.
	after func()
	// deletions are what a call deletes that takes further ones until it begins; none of
	// another call.
	deletions []deletion
}

// deletion is a node that is to be deleted, with what reports its outcome.
type deletion struct {
	step.NodeDeletion
	done func(step.NodeDeletion, error)
}

// groupLanes are the calls of all groups. Those of one group are made one after the other, since each may
// change what the next is about; those of different groups side by side, as many as there are slots.
type groupLanes struct {
	slots chan struct{} // a token for each group that is called
	lanes lanes[string]

	mu      sync.Mutex
	calling map[string]bool // guarded by mu; groups of which a call is under way
	// open are the calls that take further deletions: the last of their groups, which haven't
	// begun. Guarded by mu.
	open map[string]*cloudCall
	// touched are the groups of which a call was under way at any time since the list
	// of groups is being read; nil while it isn't. Guarded by mu.
	touched map[string]bool
}

func newGroupLanes() groupLanes {
	return groupLanes{slots: make(chan struct{}, cloudWorkers), lanes: newLanes[string](), calling: map[string]bool{}, open: map[string]*cloudCall{}}
}

// add makes a call after those of its group that were added before. Deletions join a call of their group
// that hasn't begun, so that the provider is asked once for many nodes.
func (l *groupLanes) add(ctx context.Context, wg *sync.WaitGroup, call cloudCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if open := l.open[call.group]; open != nil && call.deletions != nil {
		open.deletions = append(open.deletions, call.deletions...)
		return
	}
	delete(l.open, call.group)
	if call.deletions != nil {
		l.open[call.group] = &call
	}
	l.lanes.add(ctx, wg, call.group, laneCall{nil, l.slots, func(ctx context.Context) {
		l.begin(&call)
		call.do(ctx, call.deletions)
		l.end(call.group)
		if call.after != nil {
			call.after()
		}
	}})
}

// begin records that a call has begun: its deletions are complete now, and its group is busy.
func (l *groupLanes) begin(call *cloudCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[call.group] == call {
		delete(l.open, call.group)
	}
	l.calling[call.group] = true
	if l.touched != nil {
		l.touched[call.group] = true
	}
}

// end records that a call has ended. Its group stays among the busy ones of a list that is being read:
// the list may be older than the call's outcome.
func (l *groupLanes) end(group string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.calling, group)
}

// beginList records which groups are called from now on, those that are being called included.
func (l *groupLanes) beginList() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.touched = maps.Clone(l.calling)
}

// endList calls f with the groups that were called since beginList, sorted. No call begins
// before f returns: its outcome comes after what f gives to the core.
func (l *groupLanes) endList(f func(busy []string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	busy := slices.Sorted(maps.Keys(l.touched))
	l.touched = nil
	f(busy)
}
