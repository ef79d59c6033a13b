package engine

import (
	"cmp"
	"slices"
)

// This file bounds what columns take. A column has some 40 bytes for each node, and whoever may create
// pods may have as many made as pods differ in what local rules read of them. So only so many are
// filled at a time; those that were asked the longest ago are emptied, and filled again
// when they are asked, which costs as much as the first time and changes no answer.

// filledColumns is how many columns are filled at most where nodes are many, and filledCells
// how many cells those have at most where nodes are few: some 320 MiB.
const (
	filledColumns = 512
	filledCells   = 8 << 20
)

// maxFilled returns how many columns may be filled.
func (e *Engine) maxFilled() int {
	if e.options.Columns > 0 {
		return max(e.options.Columns, 2) // one and that from which it takes its scores
	}
	return max(filledColumns, filledCells/(e.state.Len()+1))
}

// synced brings a column up to date, and notes that it was asked, and the one from which it
// takes its scores.
func (e *Engine) synced(c *column) *column {
	if c.leader != nil {
		e.note(c.leader)
	}
	e.note(c)
	c.sync()
	return c
}

// note makes a column the last one that was asked. One that is about to be filled gets its place.
func (e *Engine) note(c *column) {
	e.questions++
	c.asked = e.questions
	if c.filled {
		return
	}
	if len(e.filled) >= e.maxFilled() {
		e.emptyOldest()
	}
	c.filled = true
	e.filled = append(e.filled, c)
}

// emptyOldest empties an eighth of the columns, so that looking for them costs little for each that is
// filled.
func (e *Engine) emptyOldest() {
	slices.SortFunc(e.filled, func(a, b *column) int { return cmp.Compare(a.asked, b.asked) })
	n := max(1, len(e.filled)/8, len(e.filled)-e.maxFilled()+1)
	for _, c := range e.filled[:n] {
		c.empty()
	}
	e.filled = slices.Delete(e.filled, 0, n)
}

// empty has a column forget all that it knows of nodes, and give its memory back.
func (c *column) empty() {
	c.cells, c.groupIndex, c.tally, c.pending = nil, groupIndex{}, nil, nil
	c.built, c.filled = false, false
}

// dropPrivate forgets the column of the class's own, if there is one.
func (e *Engine) dropPrivate(c *Class) {
	if c.private == nil {
		return
	}
	e.drop(c.private)
	delete(e.privates, c.private)
	c.private = nil
}

// drop empties columns that nobody will ask any more.
func (e *Engine) drop(columns ...*column) {
	some := false
	for _, c := range columns {
		some = some || c.filled
		c.empty()
	}
	if some {
		e.filled = slices.DeleteFunc(e.filled, func(c *column) bool { return !c.filled })
	}
}
