package nodegroups

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
)

// This file remembers how each node was when it was first seen. A node that has come from another
// group shows what that group's nodes look like; of one that was usable already, nobody knows with
// which taints it has begun.

// sight is how a node was first seen.
type sight struct {
	uid      types.UID
	group    string // the first that it was in; "" for none yet
	starting bool   // it wasn't usable yet
}

// firstSight returns how a node was first seen, which may be now.
func (m *Machine) firstSight(n *cluster.NodeInfo, usable bool) sight {
	s, known := m.sights[n.Name]
	if !known || s.uid != n.Object.UID {
		s = sight{uid: n.Object.UID, starting: !usable}
	}
	if s.group == "" {
		s.group = n.Group
	}
	m.sights[n.Name] = s
	return s
}

// NodeGone forgets how a node was first seen, and which devices it has.
func (m *Machine) NodeGone(name string) {
	delete(m.sights, name)
	m.devicesGone(name)
}
