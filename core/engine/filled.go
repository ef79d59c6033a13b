package engine

import (
	"cmp"
	"slices"
)

// This file bounds what columns take. A column has some 40 bytes for each node, and whoever may create
// pods may have as many made as pods differ in what local rules read of them. So only so many are
// filled at a time; those that were used the longest ago are emptied, and filled again
// when they are used, which costs as much as the first time and changes no answer.
//
// What must hold between two questions: the list Engine.filled has each column that was built and
// not emptied, once. A question empties no column that it uses itself.

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

// synced brings a column up to date, and notes that it is used, and the one from which it takes
// its scores.
func (e *Engine) synced(c *column) *column {
	if c.source != nil {
		e.use(c.source)
	}
	e.use(c)
	c.sync()
	return c
}

// use makes a column the one that was used last. One that is empty gets a place; the caller's sync
// fills it.
func (e *Engine) use(c *column) {
	e.uses++
	c.used = e.uses
	if c.built {
		return
	}
	if len(e.filled) >= e.maxFilled() {
		e.emptyOldestColumns()
	}
	e.filled = append(e.filled, c)
}

// emptyOldestColumns empties an eighth of the columns, so that looking for them costs little for each
// that is filled.
func (e *Engine) emptyOldestColumns() {
	slices.SortFunc(e.filled, func(a, b *column) int { return cmp.Compare(a.used, b.used) })
	n := max(1, len(e.filled)/8, len(e.filled)-e.maxFilled()+1)
	for _, c := range e.filled[:n] {
		c.empty()
	}
	e.filled = slices.Delete(e.filled, 0, n)
}

// empty has a column forget all that it knows of nodes, and give its memory back.
func (c *column) empty() {
	c.cells, c.groupIndex, c.tally, c.pending = nil, groupIndex{}, nil, nil
	c.built, c.failing = false, 0
}

// dropPrivate forgets the column of the class's own, if there is one.
func (e *Engine) dropPrivate(c *Class) {
	if c.private == nil {
		return
	}
	c.private.empty()
	e.leaveOutEmpty()
	delete(e.privates, c.private)
	c.private = nil
}

// leaveOutEmpty takes columns that were emptied out of the list of those that are filled.
func (e *Engine) leaveOutEmpty() {
	e.filled = slices.DeleteFunc(e.filled, func(c *column) bool { return !c.built })
}
