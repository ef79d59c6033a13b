package mix

// This file multiplies by the relaxation's matrix A, as relaxation.go writes it down, and
// by its transpose. Variables and constraints are numbered by relaxation.number.

// times sets y to A·x.
func (r *relaxation) times(x, y []float64) {
	clear(y)
	for e := range r.edges {
		edge := &r.edges[e]
		f := x[e]
		y[r.rowC+edge.class] += f
		rows := y[r.rowQ+r.groups[edge.group].row:]
		for k, needs := range edge.needs {
			rows[k] += needs * f
		}
		if l := edge.limit; l >= 0 {
			y[l] = edge.alone*f - x[r.colN+edge.group] + x[r.colO+l]
		}
	}
	for j := range r.groups {
		group, n := &r.groups[j], x[r.colN+j]
		for k := range group.resources {
			y[r.rowQ+group.row+k] += x[r.colS+group.row+k] - n
		}
		if group.room >= 0 {
			y[r.rowR+group.room] = n + x[r.colW+group.room]
		}
	}
	for i, u := range r.unmet {
		if u >= 0 {
			y[r.rowC+i] += x[r.colU+u]
		}
	}
}

// transposed sets x to the transpose of A times y.
func (r *relaxation) transposed(y, x []float64) {
	clear(x)
	for e := range r.edges {
		edge := &r.edges[e]
		sum := y[r.rowC+edge.class]
		rows := y[r.rowQ+r.groups[edge.group].row:]
		for k, needs := range edge.needs {
			sum += needs * rows[k]
		}
		if l := edge.limit; l >= 0 {
			sum += edge.alone * y[l]
			x[r.colO+l] = y[l]
			x[r.colN+edge.group] -= y[l]
		}
		x[e] = sum
	}
	for j := range r.groups {
		group := &r.groups[j]
		for k := range group.resources {
			v := y[r.rowQ+group.row+k]
			x[r.colS+group.row+k] = v
			x[r.colN+j] -= v
		}
		if group.room >= 0 {
			v := y[r.rowR+group.room]
			x[r.colW+group.room] = v
			x[r.colN+j] += v
		}
	}
	for i, u := range r.unmet {
		if u >= 0 {
			x[r.colU+u] = y[r.rowC+i]
		}
	}
}
