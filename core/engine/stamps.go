package engine

import "github.com/berthproject/berth/core/cluster"

// stamps is a set of nodes that is emptied in O(1), for sets that are made anew at
// each decision: a node is in it when its stamp is the current serial. next must be
// called before the first use, and again when nodes have been added.
type stamps struct {
	at     []uint32 // by node index
	serial uint32   // not 0 after next
}

// next empties the set and makes room for n nodes.
func (s *stamps) next(n int) {
	for len(s.at) < n {
		s.at = append(s.at, 0)
	}
	s.serial++
	if s.serial == 0 { // after 2^32 sets old stamps would count again
		clear(s.at)
		s.serial = 1
	}
}

// has reports whether node i is in the set.
func (s *stamps) has(i cluster.NodeIndex) bool { return s.at[i] == s.serial }

// set adds node i and reports whether it was not in the set before.
func (s *stamps) set(i cluster.NodeIndex) bool {
	if s.at[i] == s.serial {
		return false
	}
	s.at[i] = s.serial
	return true
}
