package binding

// Looked returns how many waits for permission were looked at to end some.
func (m *Machine) Looked() int { return m.looked }
