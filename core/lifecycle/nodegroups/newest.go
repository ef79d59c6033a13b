package nodegroups

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// This file keeps what new nodes of a group look like: like its newest usable node, but for what is
// true of that node alone. It is remembered when the node is gone: taken from whichever nodes there
// are, an old one that somebody has relabelled would have nodes ordered for what they don't have,
// again and again.

// newest is what is remembered of the newest usable nodes of a group. The zero value has seen none.
type newest struct {
	first, second *cluster.NodeInfo // as they were last usable, the one created last first; nil for none
	// taints are those of first when it was first seen to be usable. One that came later was put
	// there by somebody who looks at this node, or will take it away.
	taints []v1.Taint
	// before are those of second, likewise.
	before []v1.Taint
	// model is first without the taints that are its own.
	model *cluster.NodeInfo
}

// NodeUsable records a node that takes pods. template is the provider's for its group; nil when
// the group isn't known.
func (m *Machine) NodeUsable(n, template *cluster.NodeInfo) {
	if n.Group != "" && !n.Object.Spec.Unschedulable && !n.HasTaint(autoscaler.ToBeDeletedTaint) {
		m.group(n.Group).newest.see(n, template)
	}
}

func (w *newest) see(n, template *cluster.NodeInfo) {
	same := w.first != nil && w.first.Name == n.Name && w.first.Object.UID == n.Object.UID
	switch first := autoscaler.Newer(w.first, n); {
	case same:
		w.first = n
	case first == n:
		w.second, w.before = w.first, w.taints
		w.first, w.taints = n, n.Object.Spec.Taints
	case w.second != nil && w.second.Name == n.Name && w.second.Object.UID == n.Object.UID:
		w.second = n
	case autoscaler.Newer(w.second, n) == n:
		w.second, w.before = n, n.Object.Spec.Taints
	}
	w.remodel(template)
}

// remodel makes the model of what is known of the newest node.
func (w *newest) remodel(template *cluster.NodeInfo) {
	w.model = w.first
	general := slices.DeleteFunc(slices.Clone(w.first.Object.Spec.Taints), func(t v1.Taint) bool { return !w.general(&t, template) })
	if len(general) < len(w.first.Object.Spec.Taints) {
		object := *w.first.Object
		object.Spec.Taints = general
		w.model = w.first.With(&object)
	}
}

// general reports whether new nodes will have a taint of the newest node: the provider says so, or
// the node has had it from the beginning and the second newest, too. That one may not be known; then
// the first alone counts.
func (w *newest) general(t *v1.Taint, template *cluster.NodeInfo) bool {
	has := func(taints []v1.Taint) bool {
		return slices.ContainsFunc(taints, func(x v1.Taint) bool { return x.MatchTaint(t) })
	}
	if template != nil && has(template.Object.Spec.Taints) {
		return true
	}
	return has(w.taints) && (w.second == nil || has(w.before))
}

// templateChanged forgets what the group's nodes looked like when none of them is left: new ones
// will be as the provider says now.
func (m *Machine) templateChanged(state *cluster.State, id string) {
	left := false
	state.Nodes(func(n *cluster.Node) { left = left || n.Group == id })
	if !left {
		m.group(id).newest = newest{}
	}
}

// onlyNodeGone forgets the taints of the only node that a group has ever had when it is gone: there
// is no other that would show whether they are general, and without new nodes there never will be.
// The provider's template says which taints new nodes have.
func (m *Machine) onlyNodeGone(state *cluster.State, id string) {
	w, template := &m.group(id).newest, state.Template(id)
	if w.first == nil || w.second != nil || len(w.taints) == 0 || template == nil || state.NodeByName(w.first.Name) != nil {
		return
	}
	w.taints = nil
	w.remodel(template)
}
