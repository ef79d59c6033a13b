package candidates

import "time"

// Description is what is known of a candidate at one moment, for people.
type Description struct {
	Since time.Time // when it became one
	Due   time.Time // when its time has come, or will have; zero for never
	Ready bool      // the node was ready then, and has been since
}

// Describe returns what is known of a candidate; ok is false for any other node.
func (m *Machine) Describe(node string) (d Description, ok bool) {
	c, ok := m.byName[node]
	if !ok {
		return Description{}, false
	}
	d = Description{Since: c.since, Ready: c.ready}
	switch {
	case c.ready:
		d.Due = c.since.Add(m.cfg.UnneededTime)
	case !m.cfg.KeepUnready:
		d.Due = c.since.Add(m.cfg.UnreadyTime)
	}
	return d, true
}
