package cluster

import "fmt"

// A what-if is what happens to a state between Mark and the Rollback or Release
// of that mark. What-ifs nest like parentheses. Invariants:
//
//   - the mark that ends is the one that was set last and is still open;
//   - a mark ends once, and on the state that set it;
//   - while a mark is open the journal isn't trimmed, and no follower reads it.
//
// Whoever breaks one has lost track of what is real, and every decision after
// that would be wrong without a sign of it. So misuse panics.

// Mark is an open what-if of one State. It is a value; the zero Mark belongs to
// no state.
type Mark struct {
	state  *State
	serial uint64 // among all marks that the state has set
	depth  int    // 1 for an outermost mark
	at     Seq    // position when it was set
}

// Mark opens a what-if. The caller ends it with Rollback or Release.
func (s *State) Mark() Mark {
	j := &s.journal
	j.marked++
	j.marks = append(j.marks, j.marked)
	return Mark{state: s, serial: j.marked, depth: len(j.marks), at: s.Head()}
}

// Rollback ends a what-if and takes back every change since its mark, in
// O(changes); then it tells the caches. Node indices, the order of pods on
// nodes and all facts are as they were.
func (s *State) Rollback(m Mark) {
	s.end(m, "rollback")
	j := &s.journal
	undone := j.changes[m.at-j.base:]
	if len(undone) == 0 {
		return
	}
	for i := len(undone) - 1; i >= 0; i-- {
		s.undo(&undone[i])
		j.turn()
	}
	j.epoch++
	for _, c := range s.caches {
		c.RolledBack(m.at, undone)
	}
	clear(undone)
	j.changes = j.changes[:m.at-j.base]
}

// Release ends a what-if and keeps what was done since its mark. Inside another
// what-if, that one's mark still takes it back.
func (s *State) Release(m Mark) { s.end(m, "release") }

// MarkOpen reports whether a what-if is going on.
func (s *State) MarkOpen() bool { return len(s.journal.marks) > 0 }

// end closes the innermost open mark, which m has to be.
func (s *State) end(m Mark, what string) {
	j := &s.journal
	switch {
	case m.state != s:
		panic(fmt.Sprintf("cluster: %s of a mark that another state has set", what))
	case m.depth > len(j.marks) || j.marks[m.depth-1] != m.serial:
		panic(fmt.Sprintf("cluster: %s of mark %d, which was rolled back or released before", what, m.serial))
	case m.depth < len(j.marks):
		panic(fmt.Sprintf("cluster: %s of mark %d while mark %d, set inside it, is open", what, m.serial, j.marks[len(j.marks)-1]))
	}
	j.marks = j.marks[:m.depth-1]
}
