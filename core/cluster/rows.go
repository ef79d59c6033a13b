package cluster

// rows numbers rows, lists of integers, from 1 on: for group rules whose StaticKey has to
// tell nodes apart by more than one number. A row keeps its number for the life of the
// state, rollbacks included. Numbers depend on history: they tell rows apart, and must not
// be compared otherwise.
type rows struct {
	ids  map[string]int32 // by the row's bytes, 8 for each integer
	list [][]int64        // the row numbered n is at n-1
	buf  []byte           // of the call of Row that is going on
}

// Row returns the number of a row, which it numbers if it is new: equal rows have equal
// numbers. It allocates for new rows only.
func (s *State) Row(row []int64) int32 {
	r := &s.rows
	r.buf = r.buf[:0]
	for _, v := range row {
		for k := 0; k < 64; k += 8 {
			r.buf = append(r.buf, byte(v>>k))
		}
	}
	if id, ok := r.ids[string(r.buf)]; ok {
		return id
	}
	if r.ids == nil {
		r.ids = map[string]int32{}
	}
	r.list = append(r.list, append([]int64(nil), row...))
	id := int32(len(r.list))
	r.ids[string(r.buf)] = id
	return id
}

// RowOf returns the row that Row has given a number. The caller must not write to it.
func (s *State) RowOf(id int32) []int64 { return s.rows.list[id-1] }
