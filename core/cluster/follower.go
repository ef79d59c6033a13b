package cluster

import "errors"

// ErrBehind says that the journal no longer reaches back to where the follower
// stands: start a new follower.
var ErrBehind = errors.New("the journal was trimmed past this follower's position")

// Follower is a second copy of a state, kept up by replaying its journal. Node
// indices are the primary's.
type Follower struct {
	*State
	primary *State
	epoch   Epoch
	at      Seq
}

// Follow starts a follower. The primary's journal must never have been trimmed:
// the follower begins with an empty state and replays all of it.
func Follow(primary *State) *Follower {
	if primary.journal.base > 0 {
		panic("cluster: a follower of a primary whose journal was trimmed")
	}
	return &Follower{State: New(primary.Schema), primary: primary}
}

// Position returns the primary's position that the follower has reached.
func (f *Follower) Position() (Epoch, Seq) { return f.epoch, f.at }

// CatchUp replays what the primary did since, in O(changes). It returns ErrBehind
// when the journal no longer has all of that. It must not run while the primary
// is being changed, and panics while a what-if is going on in either state:
// what the primary will roll back isn't to be followed, and the follower would
// roll back what it has followed. So a rollback of the primary leaves nothing to
// undo here.
func (f *Follower) CatchUp() error {
	switch {
	case f.primary.MarkOpen():
		panic("cluster: a follower reads past an open mark of its primary")
	case f.MarkOpen():
		panic("cluster: a follower catches up inside a what-if of its own")
	}
	changes, ok := f.primary.Since(f.at)
	if !ok {
		return ErrBehind
	}
	for i := range changes {
		f.record(changes[i])
	}
	f.at, f.epoch = f.primary.Head(), f.primary.Epoch()
	return nil
}
