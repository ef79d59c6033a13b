package cluster

// rows numbers rows of numbers from 1 on, for rules that tell nodes apart by
// more than fits into a structural key. Numbers stay, and order nothing.
type rows struct {
	ids  map[string]int32
	list [][]int64
	buf  []byte
}

// Row returns the number of a row; equal rows have one number.
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

// RowOf returns the row of a number.
func (s *State) RowOf(id int32) []int64 { return s.rows.list[id-1] }
