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
	ObjectRenewed               // Object: a new version in which rules read nothing new
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

// record applies a change and appends it.
func (s *State) record(c Change) {
	s.apply(&c)
	s.journal.changes = append(s.journal.changes, c)
}
