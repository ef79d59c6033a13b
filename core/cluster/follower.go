package cluster

import "errors"

// ErrBehind says that the journal no longer reaches back to where the follower
// stands: start a new follower.
var ErrBehind = errors.New("the journal was trimmed past this follower's position")

// ErrMarkOpen says that the leader is in a what-if.
var ErrMarkOpen = errors.New("the leader has an open mark")

// Follower is a second copy of a state, kept up by replaying its journal. Node
// indices are the leader's.
type Follower struct {
	*State
	leader *State
	epoch  Epoch
	at     Seq
}

// Follow starts a follower with a leader that has not been trimmed yet.
func Follow(leader *State) *Follower {
	return &Follower{State: New(leader.Schema), leader: leader, at: leader.journal.base}
}

// Position returns the leader's position that the follower has reached.
func (f *Follower) Position() (Epoch, Seq) { return f.epoch, f.at }

// CatchUp replays what the leader did since. It must not run while the leader
// is being changed. Rollbacks of the leader leave nothing to undo, since a
// follower never reads past an open mark.
func (f *Follower) CatchUp() error {
	if f.leader.MarkOpen() {
		return ErrMarkOpen
	}
	changes, ok := f.leader.Since(f.at)
	if !ok {
		return ErrBehind
	}
	for i := range changes {
		f.record(changes[i])
	}
	f.at, f.epoch = f.leader.Head(), f.leader.Epoch()
	return nil
}
