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
	// fromStart reports that first was seen before it was usable, so that taints are those with
	// which it has begun.
	fromStart bool
	// common are the taints that all nodes have had which weren't seen from their start, nil before
	// anyCommon is set.
	common    []v1.Taint
	anyCommon bool
	// model is first without the taints that are its own.
	model *cluster.NodeInfo
}

// NodeShown records a node that the API shows. usable reports whether it takes pods. template is the
// provider's for its group; nil when the group isn't known.
func (m *Machine) NodeShown(n, template *cluster.NodeInfo, usable bool) {
	first := m.firstSight(n, usable)
	if !usable || n.Group == "" || n.Object.Spec.Unschedulable || n.HasTaint(autoscaler.ToBeDeletedTaint) {
		return
	}
	if first.group != n.Group && (template == nil || isGiven(template)) {
		return
	}
	m.group(n.Group).newest.see(n, template, first.starting)
}

// isGiven reports whether the provider has ever given the template of a group.
func isGiven(template *cluster.NodeInfo) bool { return len(template.Object.Status.Allocatable) > 0 }

// see records a usable node of the group. fromStart reports that it was first seen before it was
// usable.
func (w *newest) see(n, template *cluster.NodeInfo, fromStart bool) {
	if !fromStart {
		w.narrow(n.Object.Spec.Taints)
	}
	same := w.first != nil && w.first.Name == n.Name && w.first.Object.UID == n.Object.UID
	switch first := autoscaler.Newer(w.first, n); {
	case same:
		w.first = n
	case first == n:
		w.second, w.before = w.first, w.taints
		w.first, w.taints, w.fromStart = n, n.Object.Spec.Taints, fromStart
	case w.second != nil && w.second.Name == n.Name && w.second.Object.UID == n.Object.UID:
		w.second = n
	case autoscaler.Newer(w.second, n) == n:
		w.second, w.before = n, n.Object.Spec.Taints
	}
	w.remodel(template)
}

// narrow takes out of the common taints those that a node doesn't have.
func (w *newest) narrow(taints []v1.Taint) {
	if !w.anyCommon {
		w.common, w.anyCommon = taints, true
		return
	}
	w.common = slices.DeleteFunc(slices.Clone(w.common), func(t v1.Taint) bool { return !hasTaint(taints, &t) })
}

// hasTaint reports whether one of the taints has the key and the effect of t; values may differ.
func hasTaint(taints []v1.Taint, t *v1.Taint) bool {
	return slices.ContainsFunc(taints, func(x v1.Taint) bool { return x.MatchTaint(t) })
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
// the first alone counts. If the node is older than this process, somebody may have put the taint
// there since: then all nodes that are must have it.
func (w *newest) general(t *v1.Taint, template *cluster.NodeInfo) bool {
	if template != nil && hasTaint(template.Object.Spec.Taints, t) {
		return true
	}
	return hasTaint(w.taints, t) && (w.second == nil || hasTaint(w.before, t)) && (w.fromStart || hasTaint(w.common, t))
}

// templateChanged forgets what the group's nodes looked like when none of them is left: new ones
// will be as the provider says now.
func (m *Machine) templateChanged(state *cluster.State, id string) {
	left := false
	state.Nodes(func(n *cluster.Node) { left = left || n.Group == id && m.sights[n.Name].group == id })
	if !left {
		m.group(id).newest, m.group(id).devices = newest{}, groupDevices{}
	}
}

// onlyNodesGone forgets the taints of a group's nodes when none is left that would show whether they
// are general, and without new nodes there never will be: of the only node that the group has ever
// had, and of nodes that are older than this process. The provider's template says which taints new
// nodes have.
func (m *Machine) onlyNodesGone(state *cluster.State, id string) {
	w, template := &m.group(id).newest, state.Template(id)
	if w.first == nil || len(w.taints) == 0 || template == nil || state.NodeByName(w.first.Name) != nil {
		return
	}
	if w.second != nil && (w.fromStart || !isGiven(template) || state.NodeByName(w.second.Name) != nil) {
		return
	}
	w.taints = nil
	w.remodel(template)
}
