package candidates

import (
	"time"

	"github.com/berthproject/berth/core/cluster"
)

// Description is what is known of a candidate at one moment, for people.
type Description struct {
	Since time.Time // when it became one
	Due   time.Time // when its time has come, or will have; zero for never
	Ready bool      // the node was ready then, and has been since
	// DrainsInVain is how many drains of it in a row evicted pods and did not end with its removal.
	DrainsInVain int
}

// Describe returns what is known of a candidate of a group, nil for none; ok is false for any
// other node.
func (m *Machine) Describe(node string, g *cluster.NodeGroup) (d Description, ok bool) {
	c, ok := m.byName[node]
	if !ok {
		return Description{}, false
	}
	return Description{Since: c.since, Due: m.dueAt(c, g), Ready: c.ready, DrainsInVain: c.vain}, true
}
