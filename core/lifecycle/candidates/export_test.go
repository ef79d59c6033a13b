package candidates

// SteerBulk has the state get so many soft taints at a time.
func (m *Machine) SteerBulk(n int) { m.steerBulk = n }
