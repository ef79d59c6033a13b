package framework

import "github.com/berthproject/berth/core/cluster"

// HostKeys makes one host key of the counts of several host facts. The zero
// value is ready. Keys are given in the order in which combinations are met;
// they tell nodes apart and order nothing.
type HostKeys struct {
	byCounts map[string]int32
	counts   []int32 // of the keys from 1 on, one row each
	buf      []byte
}

// Key returns the key of a node: 0 when all counts are.
func (h *HostKeys) Key(facts []*cluster.Fact, n cluster.NodeIndex) int32 {
	switch len(facts) {
	case 0:
		return 0
	case 1:
		return facts[0].CountAt(n)
	}
	zero := true
	h.buf = h.buf[:0]
	for _, f := range facts {
		c := f.CountAt(n)
		zero = zero && c == 0
		h.buf = append(h.buf, byte(c), byte(c>>8), byte(c>>16), byte(c>>24))
	}
	if zero {
		return 0
	}
	if key, ok := h.byCounts[string(h.buf)]; ok {
		return key
	}
	if h.byCounts == nil {
		h.byCounts = map[string]int32{}
	}
	key := int32(len(h.byCounts) + 1)
	h.byCounts[string(h.buf)] = key
	for _, f := range facts {
		h.counts = append(h.counts, f.CountAt(n))
	}
	return key
}

// Count returns the count of one of the facts, of which there are of, under a
// key.
func (h *HostKeys) Count(key int32, fact, of int) int32 {
	switch {
	case key == 0:
		return 0
	case of == 1:
		return key
	}
	return h.counts[(int(key)-1)*of+fact]
}
