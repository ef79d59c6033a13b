package scaleup

// Anew has the packer's plans keep nothing from round to round, and explain with a new node in
// the state for each class and group: the slow twin of plans.
func (p *Packer) Anew() { p.anew, p.Memory = true, nil }
