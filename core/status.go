package core

import (
	"github.com/berthproject/berth/autoscaler"
	"github.com/berthproject/berth/cluster"
)

// GroupStatus is how a node group stands.
type GroupStatus struct {
	cluster.NodeGroup
	Registered, Ready, Deleting int // nodes in the API
}

// Groups returns how the node groups stand, by ID.
func (c *Core) Groups() []GroupStatus {
	at := map[string]int{}
	var out []GroupStatus
	for i, g := range c.state.Groups() {
		at[g.ID] = i
		out = append(out, GroupStatus{NodeGroup: *g})
	}
	c.state.Nodes(func(n *cluster.Node) {
		i, ok := at[n.Group]
		if !ok {
			return
		}
		out[i].Registered++
		switch {
		case n.HasTaint(autoscaler.ToBeDeletedTaint):
			out[i].Deleting++
		case n.Ready():
			out[i].Ready++
		}
	})
	return out
}
