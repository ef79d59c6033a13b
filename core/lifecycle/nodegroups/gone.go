package nodegroups

import (
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
)

// This file finds the nodes whose instance is gone: a preempted instance's Node object stays for
// minutes, and is not to hide the instance that replaces it. Cluster Autoscaler leaves such nodes out
// of its counts, too.

// findGone finds the nodes whose instance isn't listed any more, in groups whose list is another than
// the last. A node without a provider ID can't be told from one that is. It costs O(nodes) when there
// is such a group.
func (m *Machine) findGone(state *cluster.State, groups []nodegroup.Group) {
	listed := map[string]map[string]bool{}
	for i := range groups {
		g := &groups[i]
		if g.Instances == nil {
			delete(m.gone, g.ID)
			continue
		}
		if last, ok := m.lists[g.ID]; ok && sameInstances(last.all, g.Instances) {
			continue
		}
		listed[g.ID] = idsAndNames(g.Instances)
		delete(m.gone, g.ID)
	}
	if len(listed) == 0 {
		return
	}
	m.coming.counted = false
	state.Nodes(func(n *cluster.Node) {
		known, id := listed[n.Group], n.Object.Spec.ProviderID
		if known == nil || id == "" || known[id] || known[n.Name] {
			return
		}
		if m.gone[n.Group] == nil {
			m.gone[n.Group] = map[string]bool{}
		}
		m.gone[n.Group][n.Name] = true
	})
}

// Lost reports whether a node isn't ready and its instance is gone.
func (m *Machine) Lost(n *cluster.NodeInfo) bool {
	return autoscaler.GroupCondition{Gone: m.gone[n.Group]}.Lost(n)
}

// idsAndNames returns the IDs of instances and the names of their nodes. A provider may give one as
// the other.
func idsAndNames(instances []nodegroup.Instance) map[string]bool {
	out := make(map[string]bool, 2*len(instances))
	for i := range instances {
		out[instances[i].ID] = true
		out[instances[i].Node] = true
	}
	delete(out, "")
	return out
}
