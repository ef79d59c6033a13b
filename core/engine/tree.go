package engine

import "slices"

// The index of a group: which of its nodes has the highest key.
//
// Slots are dense: adding appends one, only the last one can go (whoever removes
// another moves the last into its place first). Setting a slot costs
// O(fanout · levels), and below 17 slots the tree is a flat array. Of the indexes
// tried, this one lowered the best key fastest, which is what a placement does: 51 ns,
// against 54 to 114 for a binary tournament, a 4-ary heap and sorted blocks.
//
// Invariants, with n slots: levels[0] has n entries; an entry of levels[k+1] is the
// maximum of a block of fanout entries of levels[k], the last block may be short;
// only the last level has at most fanout entries, and it is scanned.

// fanout of the tree: a block of children is two cache lines.
const fanout = 16

// tree is a maximum tree over keys; key 0 means "not a candidate". The zero value is
// an empty tree.
type tree struct {
	levels [][]scoreKey // levels[0] are the slots' keys
	n      int          // slots
}

// add appends a slot.
func (t *tree) add(key scoreKey) {
	if len(t.levels) == 0 {
		t.raise()
	}
	slot := t.n
	t.n++
	for k, at := 0, slot; ; k, at = k+1, at/fanout {
		if k == len(t.levels) {
			t.raise()
			// A new level starts with the maximum of the block before.
			t.levels[k] = append(t.levels[k], blockMax(t.levels[k-1], 0))
		}
		if at == len(t.levels[k]) {
			t.levels[k] = append(t.levels[k], 0)
		}
		if len(t.levels[k]) <= fanout {
			break
		}
	}
	t.set(slot, key)
}

// sized gives an empty tree so many slots, and returns their keys, which hold anything. The caller
// sets them, and fill must follow before anything else is asked.
func (t *tree) sized(n int) []scoreKey {
	if len(t.levels) == 0 {
		t.raise()
	}
	t.n, t.levels[0] = n, slices.Grow(t.levels[0], n)[:n]
	return t.levels[0]
}

// fill finds the maxima above the slots of a tree that was sized, in O(slots).
func (t *tree) fill() {
	for k := 0; k < len(t.levels) && len(t.levels[k]) > fanout; k++ {
		t.raise()
		for block := 0; block*fanout < len(t.levels[k]); block++ {
			t.levels[k+1] = append(t.levels[k+1], blockMax(t.levels[k], block))
		}
	}
}

// raise adds a level without entries, with the memory of the one that was there before, if
// there was.
func (t *tree) raise() {
	if k := len(t.levels); k < cap(t.levels) {
		t.levels = t.levels[:k+1]
		t.levels[k] = t.levels[k][:0]
		return
	}
	t.levels = append(t.levels, nil)
}

// set changes the key of a slot, and the maxima above it as far as they change.
func (t *tree) set(slot int, key scoreKey) {
	t.write(slot, key)
	t.lift(slot)
}

// write changes the key of a slot without a look at the maxima: lift must follow for each slot that
// was written before anything else is asked.
func (t *tree) write(slot int, key scoreKey) { t.levels[0][slot] = key }

// lift brings the maxima above a slot up to date, as far as they change.
func (t *tree) lift(slot int) {
	at := slot / fanout
	for k := 1; k < len(t.levels); k++ {
		top := blockMax(t.levels[k-1], at)
		if t.levels[k][at] == top {
			return
		}
		t.levels[k][at] = top
		at /= fanout
	}
}

// blockMax returns the highest key of a block of a level.
func blockMax(level []scoreKey, block int) scoreKey {
	end := min((block+1)*fanout, len(level))
	var top scoreKey
	for _, k := range level[block*fanout : end] {
		top = max(top, k)
	}
	return top
}

// pop removes the last slot; there must be one.
func (t *tree) pop() {
	t.n--
	t.set(t.n, 0)
	for k, n := 0, t.n; k < len(t.levels); k++ {
		t.levels[k] = t.levels[k][:n]
		n = (n + fanout - 1) / fanout
	}
	for len(t.levels) > 1 && len(t.levels[len(t.levels)-2]) <= fanout {
		t.levels = t.levels[:len(t.levels)-1]
	}
}

// at returns the key of a slot.
func (t *tree) at(slot int) scoreKey { return t.levels[0][slot] }

// top returns the highest key, 0 when no slot is a candidate.
func (t *tree) top() (key scoreKey) {
	if t.n > 0 {
		for _, k := range t.levels[len(t.levels)-1] {
			key = max(key, k)
		}
	}
	return key
}

// best returns the highest key and its first slot; key 0 when no slot is a candidate.
func (t *tree) best() (key scoreKey, slot int) {
	if t.n == 0 {
		return 0, 0
	}
	last := len(t.levels) - 1
	lo, hi := 0, len(t.levels[last])
	for k := last; k >= 0; k-- {
		level := t.levels[k]
		at := lo
		for i := lo; i < hi; i++ {
			if level[i] > level[at] {
				at = i
			}
		}
		key, slot = level[at], at
		if k > 0 {
			lo, hi = at*fanout, min((at+1)*fanout, len(t.levels[k-1]))
		}
	}
	return key, slot
}

// bestExcept is best over the slots for which skip returns false. It visits blocks
// whose maximum beats what it has found so far: few, as long as few slots are skipped.
func (t *tree) bestExcept(skip func(slot int) bool) (key scoreKey, slot int) {
	if t.n == 0 {
		return 0, 0
	}
	last := len(t.levels) - 1
	t.descend(last, 0, len(t.levels[last]), skip, &key, &slot)
	return key, slot
}

// descend improves key and slot by what is below the entries lo to hi-1 of level k.
func (t *tree) descend(k, lo, hi int, skip func(int) bool, key *scoreKey, slot *int) {
	for i := lo; i < hi; i++ {
		if t.levels[k][i] <= *key {
			continue
		}
		if k > 0 {
			t.descend(k-1, i*fanout, min((i+1)*fanout, len(t.levels[k-1])), skip, key, slot)
		} else if !skip(i) {
			*key, *slot = t.levels[0][i], i
		}
	}
}
