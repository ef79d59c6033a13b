package engine

import (
	"math"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// shortfalls are how much nodes have too little of what one message is about. They know the
// smallest: a change of one node costs O(blockNodes), and so does the question, with one look
// at each block.
type shortfalls struct {
	amounts []int64 // by node index; noShortfall where the message isn't a reason
	least   []int64 // by block of nodes: the smallest of the block

	// told is the node that came nearest when this was asked for last, with its deficit, until
	// set gives that node another shortfall: then node is NoNode, and the rule is asked again.
	told struct {
		node    cluster.NodeIndex
		deficit framework.Deficit
	}
}

func newShortfalls() *shortfalls {
	s := &shortfalls{}
	s.told.node = cluster.NoNode
	return s
}

const (
	noShortfall = math.MaxInt64
	blockNodes  = 64
)

// set gives a node a shortfall, noShortfall to take it away.
func (s *shortfalls) set(i cluster.NodeIndex, short int64) {
	for len(s.amounts) <= int(i) {
		s.amounts = append(s.amounts, noShortfall)
	}
	block := int(i) / blockNodes
	for len(s.least) <= block {
		s.least = append(s.least, noShortfall)
	}
	old := s.amounts[i]
	s.amounts[i] = short
	if s.told.node == i {
		s.told.node = cluster.NoNode
	}
	switch {
	case short <= s.least[block]:
		s.least[block] = short
	case old == s.least[block]:
		s.least[block] = noShortfall
		for _, x := range s.amounts[block*blockNodes : min(len(s.amounts), (block+1)*blockNodes)] {
			s.least[block] = min(s.least[block], x)
		}
	}
}

// nearest returns the first node with the smallest shortfall; NoNode when none has one.
func (s *shortfalls) nearest() (cluster.NodeIndex, int64) {
	best, at := int64(noShortfall), -1
	for block, x := range s.least {
		if x < best {
			best, at = x, block
		}
	}
	if at < 0 {
		return cluster.NoNode, noShortfall
	}
	for i := at * blockNodes; ; i++ {
		if s.amounts[i] == best {
			return cluster.NodeIndex(i), best
		}
	}
}

// shortfall returns a deficit's amount.
func shortfall(d framework.Deficit) int64 { return d.Needed - d.Available }

// hasDeficits reports whether each message of a reason is about a quantity.
func hasDeficits(why *framework.Reason) bool {
	return len(why.Deficits) > 0 && len(why.Deficits) == len(why.Messages)
}
