package nodegroups

import (
	"iter"
	"slices"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
)

// This file says which of the instances that the provider lists are nodes. The provider lists
// all of them every few seconds, and nearly all are nodes for months: an instance that was a
// node in the last list is one in this, when the list is the same and the nodes are.

// instanceList is a list of the provider's, with those of its instances that weren't registered
// when it was taken, in its order.
type instanceList struct {
	all          []nodegroup.Instance
	unregistered []*nodegroup.Instance
	strays       []*nodegroup.Instance // those of unregistered that were known as another group's
}

// maybeUnregistered yields those of a group's listed instances, in order, that may not be
// registered: all, unless they were listed so before.
func (m *Machine) maybeUnregistered(g *nodegroup.Group) iter.Seq[*nodegroup.Instance] {
	if last, ok := m.lists[g.ID]; ok && sameInstances(last.all, g.Instances) {
		return slices.Values(last.unregistered)
	}
	return func(yield func(*nodegroup.Instance) bool) {
		for i := range g.Instances {
			if !yield(&g.Instances[i]) {
				return
			}
		}
	}
}

// sameInstances compares two lists. Lists aren't changed once they are taken in, so one that is
// the other costs nothing.
func sameInstances(a, b []nodegroup.Instance) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// nodesDiffer reports whether nodes have come or gone, or have another provider ID or group, since it
// was last called.
func (m *Machine) nodesDiffer(state *cluster.State) bool {
	changes, ok := m.nodes.Read(state)
	return !ok || slices.ContainsFunc(changes, func(c cluster.Change) bool {
		return c.Op == cluster.NodeAdded || c.Op == cluster.NodeRemoved ||
			c.Op == cluster.NodeUpdated && (c.Info.Object.Spec.ProviderID != c.Old.Object.Spec.ProviderID || c.Info.Group != c.Old.Group)
	})
}

// isRegistered reports whether an instance is a node of the state. A provider may give its node's
// name as its ID.
func isRegistered(state *cluster.State, x *nodegroup.Instance) bool {
	return state.NodeByName(x.ID) != nil || state.HasProviderID(x.ID) || state.NodeByName(x.Node) != nil || state.HasProviderID(x.Node)
}

// leaving returns the names and provider IDs of the nodes that the API has shown and that are on
// their way out, out of the state.
func (m *Machine) leaving() map[string]bool {
	out := map[string]bool{}
	m.deletions.EachOutOfState(func(n *cluster.NodeInfo) {
		out[n.Name] = true
		if id := n.Object.Spec.ProviderID; id != "" {
			out[id] = true
		}
	})
	return out
}

func isLeaving(leaving map[string]bool, id, node string) bool { return leaving[id] || leaving[node] }
