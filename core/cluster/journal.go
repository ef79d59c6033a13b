package cluster

import (
	"fmt"
	"slices"
)

// The journal: every change of the state, in order. Rolling back takes changes
// off its end, a follower replays them, and a cache reads which nodes they touch.
// Invariants:
//
//   - the state is what applying all changes so far, in order, to an empty one
//     gives;
//   - a node of which a local rule may say something else than before has a change
//     that names it, or one after it that does (NodeTouched).
//
// Recording a change takes O(1), but for what apply does, and amortised no
// allocation beside the journal's own growth.

// Seq is a position in the journal: the number of changes before it. Positions
// are used again after a rollback, so what outlives one pairs them with Epoch.
type Seq uint64

// Epoch counts rollbacks.
type Epoch uint64

// Op tells what a Change did.
type Op uint8

// The changes a state can go through. Each is primitive: it can be applied
// again by a follower and taken back by Rollback. Behind each are the fields of
// Change that it has.
const (
	NodeAdded         Op = iota // Node, Info
	NodeUpdated                 // Node, Info, Old
	NodeRemoved                 // Node, Old; its pods have been orphaned before
	PodAdded                    // Node, Pod: the pod is on the node
	PodRemoved                  // Node, Pod
	OrphanAdded                 // Pod: its node isn't known, or not any more
	OrphanRemoved               // Pod
	GroupSet                    // Group, OldGroup; either may be nil
	WorkloadSet                 // Workload, OldWorkload; either may be nil
	ObjectSet                   // Object
	ObjectRenewed               // Object: a new version in which rules read nothing new
	NodeTouched                 // Node: a change elsewhere may change what local rules say of it
	NominationAdded             // Pod, and Node when it is known
	NominationRemoved           // as NominationAdded
	HeadroomSet                 // Headroom
	WorkloadRenewed             // as WorkloadSet: rules read nothing new
	PodReadied                  // a pod is ready; rules read nothing of it
	PodUnreadied                // a pod isn't ready any more
)

func (o Op) String() string {
	names := [...]string{"NodeAdded", "NodeUpdated", "NodeRemoved", "PodAdded", "PodRemoved", "OrphanAdded", "OrphanRemoved",
		"GroupSet", "WorkloadSet", "ObjectSet", "ObjectRenewed", "NodeTouched", "NominationAdded", "NominationRemoved", "HeadroomSet", "WorkloadRenewed", "PodReadied", "PodUnreadied"}
	if int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("Op(%d)", o)
}

// Change is one entry of the journal. Which nodes were touched is its main
// word: caches recompute those from the state as it now is.
type Change struct {
	Op   Op
	Node NodeIndex // NoNode when the change touches none
	// pos is where undo puts back what was removed: a pod on its node, or an
	// orphan among those of its node's name. Of a NodeAdded it
	// says whether the index had been used before (fromFree).
	pos         int32
	place       bool   // of a nomination: Nomination.Place
	begun       uint64 // of a nomination: Nomination.Begun
	Pod         *Pod
	Info, Old   *NodeInfo // what the node's object says, and said before
	Group       *NodeGroup
	OldGroup    *NodeGroup
	Workload    *Workload
	OldWorkload *Workload
	Object      *ObjectChange
	Headroom    *HeadroomChange
	name        string // of an orphan's or a nomination's node, or of a group
}

// Cache is told of rollbacks. Between them it reads the journal at its leisure.
type Cache interface {
	// RolledBack says that the changes from position to on, given in order,
	// were taken back. The list is valid during the call. A cache whose cursor had passed some of them must look
	// at the nodes of those again.
	RolledBack(to Seq, undone []Change)
}

type journal struct {
	base    Seq // position of changes[0]; what came before was trimmed
	changes []Change
	between func() // see Between
	epoch   Epoch
	marks   []uint64 // serials of the open marks, the outermost first
	marked  uint64   // marks set so far
}

// Head returns the position after the last change.
func (s *State) Head() Seq { return s.journal.base + Seq(len(s.journal.changes)) }

// Epoch returns the number of rollbacks so far.
func (s *State) Epoch() Epoch { return s.journal.epoch }

// Since returns the changes from a position on, or ok=false when the journal
// no longer reaches back so far. The slice is valid until the next change.
func (s *State) Since(from Seq) (changes []Change, ok bool) {
	if from < s.journal.base || from > s.Head() {
		return nil, false
	}
	return s.journal.changes[from-s.journal.base:], true
}

// ReadByRules returns the changes without those of which no rule reads anything new
// (WorkloadRenewed, PodReadied, PodUnreadied). It returns the list itself when there are none.
func ReadByRules(changes []Change) []Change {
	unread := func(c Change) bool { return c.Op == WorkloadRenewed || c.Op == PodReadied || c.Op == PodUnreadied }
	if !slices.ContainsFunc(changes, unread) {
		return changes
	}
	return slices.DeleteFunc(slices.Clone(changes), unread)
}

// Trim forgets the changes before a position, once they are at least half of
// those kept: what stays is moved, so that trimming is O(1) a change. It does
// nothing while a mark is open.
func (s *State) Trim(before Seq) {
	j := &s.journal
	if len(j.marks) > 0 || before <= j.base {
		return
	}
	before = min(before, s.Head())
	if 2*(before-j.base) < Seq(len(j.changes)) {
		return
	}
	n := copy(j.changes, j.changes[before-j.base:])
	clear(j.changes[n:])
	j.changes = j.changes[:n]
	j.base = before
}

// AddCache registers a cache for rollbacks.
func (s *State) AddCache(c Cache) { s.caches = append(s.caches, c) }

// Between has f called after each change, and after each that is taken back; nil for nothing. The
// planner sets it while it makes a plan, so that f can let other threads use the processor. f must
// not use the state.
func (s *State) Between(f func()) { s.journal.between = f }

// record applies a change and appends it.
func (s *State) record(c Change) {
	s.apply(&c)
	j := &s.journal
	if len(j.changes) == cap(j.changes) {
		j.grow()
	}
	j.changes = append(j.changes, c)
	j.turn()
}

// Turn calls what Between has set: for loops that are long and change nothing.
func (s *State) Turn() { s.journal.turn() }

func (j *journal) turn() {
	if j.between != nil {
		j.between()
	}
}

// copiedAtOnce is how many changes grow copies at a time.
const copiedAtOnce = 256

// grow makes room for a quarter more changes. It copies a little at a time, where append copies
// all at once, which nothing interrupts: a garbage collector that wants to begin, and everybody
// with it, would wait for as long as it takes to copy tens of megabytes.
func (j *journal) grow() {
	n := len(j.changes)
	bigger := make([]Change, 0, n+n/4+copiedAtOnce/4)
	for piece := range slices.Chunk(j.changes, copiedAtOnce) {
		bigger = append(bigger, piece...)
		j.turn()
	}
	j.changes = bigger
}
