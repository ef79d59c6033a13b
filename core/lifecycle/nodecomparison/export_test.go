package nodecomparison

// Groups returns how many groups are remembered.
func (m *Machine) Groups() int { return len(m.groups) }
