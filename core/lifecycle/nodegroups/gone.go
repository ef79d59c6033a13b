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
	lists := map[string]*groupList{}
	var named []bool // by index: nodes that a list of their group names
	for i := range groups {
		g := &groups[i]
		if g.Instances == nil {
			delete(m.gone, g.ID)
			continue
		}
		if last, ok := m.lists[g.ID]; ok && sameInstances(last.all, g.Instances) {
			continue
		}
		if named == nil {
			named = make([]bool, state.Len())
		}
		noteNamed(state, g, named)
		lists[g.ID] = &groupList{instances: g.Instances}
		delete(m.gone, g.ID)
	}
	if len(lists) == 0 {
		return
	}
	m.coming.counted = false
	state.Nodes(func(n *cluster.Node) {
		if named[n.Index] || n.Object.Spec.ProviderID == "" {
			return
		}
		if list := lists[n.Group]; list == nil || list.has(n.NodeInfo) {
			return
		}
		if m.gone[n.Group] == nil {
			m.gone[n.Group] = map[string]bool{}
		}
		m.gone[n.Group][n.Name] = true
	})
}

// noteNamed marks the nodes of a group that its list has by their names: most, as a rule.
func noteNamed(state *cluster.State, g *nodegroup.Group, named []bool) {
	for i := range g.Instances {
		if n := state.NodeByName(g.Instances[i].Node); n != nil && n.Group == g.ID {
			named[n.Index] = true
		}
	}
}

// groupList is what the provider lists of a group.
type groupList struct {
	instances []nodegroup.Instance
	known     map[string]bool // idsAndNames, once a node needs it
}

// has reports whether the instance of a node that has a provider ID is listed.
func (l *groupList) has(n *cluster.NodeInfo) bool {
	if l.known == nil {
		l.known = idsAndNames(l.instances)
	}
	return l.known[n.Object.Spec.ProviderID] || l.known[n.Name]
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
