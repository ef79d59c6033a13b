package cluster

// Cursor is how far a reader has come in a state's journal, for who reads it outside of
// what-ifs only: no change that it has passed is rolled back then. The zero value has read
// nothing.
type Cursor struct {
	at    Seq
	begun bool
}

// Read returns the changes since the last Read, and goes on to the journal's end. ok is false at
// the first Read, and when the journal no longer reaches back so far: anything may be another
// than before. The slice is valid until the next change. Read panics inside a what-if.
func (c *Cursor) Read(s *State) (changes []Change, ok bool) {
	if s.MarkOpen() {
		panic("cluster: a cursor reads past an open mark")
	}
	changes, ok = s.Since(c.at)
	ok = ok && c.begun
	c.at, c.begun = s.Head(), true
	if !ok {
		return nil, false
	}
	return changes, true
}
