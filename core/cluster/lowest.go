package cluster

// lowest knows the lowest of a set of counts, with repeats: those of the domains
// that have nodes. All operations take O(1), but for the departure of the last
// domain with the lowest count when no count is one higher: O(distinct counts).
//
// Invariants: at has how many domains have each count, and no zeros; domains is
// their sum; min is the lowest key of at while there is one.
type lowest struct {
	domains int32
	at      map[int32]int32 // domains by their count
	min     int32
}

func (l *lowest) enter(count int32) {
	if l.domains == 0 || count < l.min {
		l.min = count
	}
	l.domains++
	l.at[count]++
}

func (l *lowest) leave(count int32) {
	l.domains--
	if l.at[count]--; l.at[count] == 0 {
		delete(l.at, count)
		if count == l.min && l.domains > 0 {
			l.findMin()
		}
	}
}

// move is leave and enter for a count that changes.
func (l *lowest) move(from, to int32) {
	l.enter(to)
	l.leave(from)
}

// findMin finds the lowest count, usually the one above the one that left.
func (l *lowest) findMin() {
	if l.at[l.min+1] > 0 {
		l.min++
		return
	}
	first := true
	for count := range l.at { // the minimum, whatever the order
		if first || count < l.min {
			l.min, first = count, false
		}
	}
}
