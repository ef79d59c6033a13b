package cluster

// Rows numbers rows, lists of integers, from 1 on: for group rules whose StaticKey has to
// tell nodes apart by more than one number. A row keeps its number as long as somebody uses
// the table, rollbacks included. Numbers depend on history: they tell rows apart, and must not
// be compared otherwise.
//
// Rules of different classes use one table where they have to number alike, as those do whose
// classes share a column.
type Rows struct {
	key   string
	users int              // calls of State.Rows without their DropRows
	ids   map[string]int32 // by the row's bytes, 8 for each integer
	list  [][]int64        // the row numbered n is at n-1
	buf   []byte           // of the call of Number that is going on
}

// Rows returns the table of a key, empty when nobody uses it so far. Each call is to be
// matched by a DropRows.
func (s *State) Rows(key string) *Rows {
	r, ok := s.rows[key]
	if !ok {
		r = &Rows{key: key, ids: map[string]int32{}}
		s.rows[key] = r
	}
	r.users++
	return r
}

// DropRows gives a table back; it is no longer kept when nobody uses it.
func (s *State) DropRows(r *Rows) {
	if r.users--; r.users == 0 {
		delete(s.rows, r.key)
	}
}

// Number returns the number of a row, which it numbers if it is new: equal rows have equal
// numbers. It allocates for new rows only.
func (r *Rows) Number(row []int64) int32 {
	r.buf = r.buf[:0]
	for _, v := range row {
		for k := 0; k < 64; k += 8 {
			r.buf = append(r.buf, byte(v>>k))
		}
	}
	if id, ok := r.ids[string(r.buf)]; ok {
		return id
	}
	r.list = append(r.list, append([]int64(nil), row...))
	id := int32(len(r.list))
	r.ids[string(r.buf)] = id
	return id
}

// At returns the row that Number has given a number. The caller must not write to it.
func (r *Rows) At(id int32) []int64 { return r.list[id-1] }
