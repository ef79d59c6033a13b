package mix

// This file solves linear programs that have few rows and whose columns aren't all known:
// the master's and the knapsack's.

// simplex is a linear program, minimise c·x subject to A·x = b and x >= 0, whose columns
// are found one by one: the revised simplex method with a dense inverse of the basis. A
// pivot costs the square of the number of rows.
//
// Invariants: inverse is that of the basic columns' matrix; x = inverse·b >= 0 has the
// values of the basic columns; y is the dual that gives each of them a reduced cost of 0.
type simplex struct {
	inverse [][]float64
	x, y    []float64
	basis   []int     // what enter was told the basic columns are
	d       []float64 // the entering column in terms of the basic ones
}

// cell is an element of a sparse column.
type cell struct {
	row   int
	value float64
}

// reset starts from a basis of unit columns, one for each row, called -1, with their
// costs. b must be positive.
func (s *simplex) reset(b, costs []float64) {
	s.x = append(s.x[:0], b...)
	s.y = append(s.y[:0], costs...)
	s.basis, s.d = s.basis[:0], s.d[:0]
	for len(s.inverse) < len(b) {
		s.inverse = append(s.inverse, nil)
	}
	s.inverse = s.inverse[:len(b)]
	for i := range b {
		s.inverse[i] = append(s.inverse[i][:0], make([]float64, len(b))...)
		s.inverse[i][i] = 1
		s.basis = append(s.basis, -1)
		s.d = append(s.d, 0)
	}
}

// reduced returns by how much the price changes for each unit of a column that enters.
func (s *simplex) reduced(cost float64, column []cell) float64 {
	for _, c := range column {
		cost -= s.y[c.row] * c.value
	}
	return cost
}

// enter makes a column basic, which should have a negative reduced cost. It returns false
// if nothing stops the column from growing.
func (s *simplex) enter(id int, cost float64, column []cell) bool {
	const tiny = 1e-9
	reduced := s.reduced(cost, column)
	leaves, least := -1, 0.0
	for i, row := range s.inverse {
		v := 0.0
		for _, c := range column {
			v += row[c.row] * c.value
		}
		s.d[i] = v
		if v > tiny {
			if ratio := s.x[i] / v; leaves < 0 || ratio < least {
				leaves, least = i, ratio
			}
		}
	}
	if leaves < 0 {
		return false
	}
	row, scale := s.inverse[leaves], 1/s.d[leaves]
	for k := range row {
		row[k] *= scale
	}
	s.x[leaves] = least
	for i, v := range s.d {
		if i == leaves || v == 0 {
			continue
		}
		other := s.inverse[i][:len(row)]
		for k, w := range row {
			other[k] -= v * w
		}
		s.x[i] = max(0, s.x[i]-v*least)
	}
	for k, w := range row {
		s.y[k] += reduced * w
	}
	s.basis[leaves] = id
	return true
}
