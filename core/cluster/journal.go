package cluster

// Seq is a position in the journal: the number of changes before it. Positions
// are used again after a rollback, so what outlives one pairs them with Epoch.
type Seq uint64

// Epoch counts rollbacks.
type Epoch uint64

// Op tells what a Change did.
type Op uint8

// The changes a state can go through. Each is primitive: it can be applied
// again by a follower and taken back by Rollback.
const (
	NodeAdded         Op = iota // Node, Info
	NodeUpdated                 // Node, Info, Old
	NodeRemoved                 // Node, Old; its pods have been orphaned before
	PodAdded                    // Node, Pod: the pod occupies the node
	PodRemoved                  // Node, Pod, pos
	OrphanAdded                 // Pod, name: it is bound to a node not (or no longer) known
	OrphanRemoved               // Pod, name, pos
	GroupSet                    // Group, OldGroup; either may be nil
	WorkloadSet                 // Workload, OldWorkload; either may be nil
	ObjectSet                   // Object
	NodeTouched                 // Node: a change elsewhere may change what local rules say of it
	NominationAdded             // Pod, name, pos, and Node when it is known
	NominationRemoved           // as NominationAdded
)

// Change is one entry of the journal. Which nodes were touched is its main
// word: caches recompute those from the state as it now is.
type Change struct {
	Op          Op
	Node        NodeIndex // NoNode when the change touches none
	pos         int32
	Pod         *Pod
	Info, Old   *NodeInfo
	Group       *NodeGroup
	OldGroup    *NodeGroup
	Workload    *Workload
	OldWorkload *Workload
	Object      *ObjectChange
	name        string
}

// Cache is told of rollbacks. Between them it reads the journal at its leisure.
type Cache interface {
	// RolledBack says that the changes from position to on, given in order,
	// were taken back. A cache whose cursor had passed some of them must look
	// at the nodes of those again.
	RolledBack(to Seq, undone []Change)
}

type journal struct {
	base    Seq // position of changes[0]
	changes []Change
	epoch   Epoch
	marks   int
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

// Trim forgets the changes before a position, once they are at least half of
// those kept: what stays is moved, so that trimming is O(1) a change. It does
// nothing while a mark is open.
func (s *State) Trim(before Seq) {
	j := &s.journal
	if j.marks > 0 || before <= j.base {
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

// Mark opens a what-if: Rollback to it takes back everything since. Marks nest.
func (s *State) Mark() Seq {
	s.journal.marks++
	return s.Head()
}

// Rollback takes back every change since the mark, in O(changes), and tells
// the caches. Node indices, the order of pods on nodes and all facts are as
// they were.
func (s *State) Rollback(mark Seq) {
	j := &s.journal
	if j.marks == 0 || mark < j.base {
		panic("cluster: rollback without its mark")
	}
	j.marks--
	undone := j.changes[mark-j.base:]
	if len(undone) == 0 {
		return
	}
	for i := len(undone) - 1; i >= 0; i-- {
		s.undo(&undone[i])
	}
	j.epoch++
	for _, c := range s.caches {
		c.RolledBack(mark, undone)
	}
	clear(undone)
	j.changes = j.changes[:mark-j.base]
}

// Release closes a mark and keeps what was done since.
func (s *State) Release(Seq) { s.journal.marks-- }

// MarkOpen tells whether a what-if is going on: a follower must not read then.
func (s *State) MarkOpen() bool { return s.journal.marks > 0 }

// AddCache registers a cache for rollbacks.
func (s *State) AddCache(c Cache) { s.caches = append(s.caches, c) }

// record applies a change and appends it.
func (s *State) record(c Change) {
	s.apply(&c)
	s.journal.changes = append(s.journal.changes, c)
}
