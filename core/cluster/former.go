package cluster

// Former has objects as they were before a what-if changed them. Where a what-if is taken back in
// parts, in another order than that of its changes, it does what Rollback does to the whole. Invariant:
// each object is in it once, as it was before the first of the changes that Note has seen; at has its position.
type Former struct {
	list []ObjectChange
	at   map[objectKey]int
}

// Empty reports whether no object has changed.
func (f *Former) Empty() bool { return len(f.list) == 0 }

// Note adds what has changed.
func (f *Former) Note(changes []ObjectChange) {
	for _, c := range changes {
		if f.Has(&c) {
			continue
		}
		if f.at == nil {
			f.at = map[objectKey]int{}
		}
		f.at[c.key()] = len(f.list)
		f.list = append(f.list, c)
	}
}

// Has reports whether the object of a change has changed.
func (f *Former) Has(c *ObjectChange) bool { return f.At(c) >= 0 }

// At returns the position of the object of a change among those that have changed, by when they were noted; -1 if
// it hasn't. It costs O(1).
func (f *Former) At(c *ObjectChange) int {
	if i, ok := f.at[c.key()]; ok {
		return i
	}
	return -1
}

// Each calls f with every object, as it was and as it was after its first change. Either may be nil.
func (f *Former) Each(do func(*ObjectChange)) {
	for i := range f.list {
		do(&f.list[i])
	}
}

// Restore makes objects those that they were, and forgets them.
func (f *Former) Restore(s *State) {
	for i := range f.list {
		f.list[i].takeBack(s)
	}
	clear(f.list)
	clear(f.at)
	f.list = f.list[:0]
}

// RestoreOne makes the object of a change the one that it was, and goes on knowing it.
func (f *Former) RestoreOne(s *State, of *ObjectChange) {
	if i := f.At(of); i >= 0 {
		f.list[i].takeBack(s)
	}
}

// takeBack sets an object as it was before the change.
func (c *ObjectChange) takeBack(s *State) {
	if c.Old != nil {
		s.SetObject(c.Old)
		return
	}
	s.RemoveObject(c.Kind(), c.New.GetNamespace(), c.New.GetName())
}
