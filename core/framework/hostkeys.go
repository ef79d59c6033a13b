package framework

import (
	"encoding/binary"

	"github.com/berthproject/berth/core/cluster"
)

// HostKeys combines the counts of a rule's host facts on a node into the one number
// that GroupRule.HostKey returns, and back. The zero value is ready.
//
// 0 means that all counts are 0. With one fact the key is the count; with more, keys
// number the combinations of counts in the order in which nodes had them first. So
// keys are equal iff the counts are, which is all that the engine asks of them: their
// order means nothing, and they aren't for reaching decisions by.
type HostKeys struct {
	byCounts map[string]int32 // key by the counts, 4 bytes each
	counts   []int32          // of the keys from 1 on, one row each; with one fact empty
	row      []byte           // scratch for Key
}

// Key returns the key of a node. A rule gives the same facts at each call. It
// allocates only for a combination of counts that no node had before.
func (h *HostKeys) Key(facts []*cluster.Fact, n cluster.NodeIndex) int32 {
	switch len(facts) {
	case 0:
		return 0
	case 1:
		return facts[0].CountAt(n)
	}
	zero := true
	h.row = h.row[:0]
	for _, f := range facts {
		c := f.CountAt(n)
		zero = zero && c == 0
		h.row = binary.LittleEndian.AppendUint32(h.row, uint32(c))
	}
	if zero {
		return 0
	}
	if key, ok := h.byCounts[string(h.row)]; ok {
		return key
	}
	if h.byCounts == nil {
		h.byCounts = map[string]int32{}
	}
	key := int32(len(h.byCounts) + 1)
	h.byCounts[string(h.row)] = key
	for _, f := range facts {
		h.counts = append(h.counts, f.CountAt(n))
	}
	return key
}

// Count returns the count that one fact has on the nodes of a key. The fact is named
// by its position in the list that Key was called with, which had n facts.
func (h *HostKeys) Count(key int32, fact, n int) int32 {
	switch {
	case key == 0:
		return 0
	case n == 1:
		return key
	}
	return h.counts[(int(key)-1)*n+fact]
}
