package cluster

// Former has objects as they were before a what-if changed them. Where a what-if is taken back in
// parts, in another order than that of its changes, it does what Rollback does to the whole. Invariant:
// each object is in it once, as it was before the first of the changes that Note has seen.
type Former struct{ list []ObjectChange }

// Empty reports whether no object has changed.
func (f *Former) Empty() bool { return len(f.list) == 0 }

// Note adds what has changed.
func (f *Former) Note(changes []ObjectChange) {
	for _, c := range changes {
		if !f.Has(&c) {
			f.list = append(f.list, c)
		}
	}
}

// Has reports whether the object of a change has changed.
func (f *Former) Has(c *ObjectChange) bool {
	key := c.key()
	for i := range f.list {
		if f.list[i].key() == key {
			return true
		}
	}
	return false
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
		if c := &f.list[i]; c.Old != nil {
			s.SetObject(c.Old)
		} else {
			s.RemoveObject(c.Kind(), c.New.GetNamespace(), c.New.GetName())
		}
	}
	clear(f.list)
	f.list = f.list[:0]
}
