package explain

import (
	"fmt"
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
)

// This file finds pods that are too large for the cluster: they fit on no node and on none of a node group, however empty
// it is. Advice to make room would send people the wrong way.

// largerThanAll returns what would help a pod that requests more of a resource than any node or node group has, a line for each
// such resource; nil for a pod that could fit somewhere, and while it isn't known what the nodes of a group have. The
// reasons are those of its diagnosis: only a resource of which nodes have too little by them counts, since plugins may
// leave resources out, and devices stand in for some. O(nodes) for each resource.
func (v *View) largerThanAll(pod *cluster.Pod, reasons []step.Why) (out []WaitsFor) {
	if slices.ContainsFunc(v.State.Groups(), templateUnknown) {
		return nil
	}
	for id, needed := range pod.Request.All() {
		at := slices.IndexFunc(reasons, func(w step.Why) bool { return w.Short != nil && w.Short.Resource == string(id.Name()) })
		if at < 0 {
			continue
		}
		most := largestTemplate(v.State.Groups(), id)
		v.State.Nodes(func(n *cluster.Node) { most = max(most, n.Allocatable.At(id)) })
		if needed > most {
			out = append(out, WaitsFor{reasons[at].Plugin, fmt.Sprintf("a node or node group with %s %s is added, or the request is lowered: the largest has %s", amount(id.Name(), needed), id.Name(), amount(id.Name(), most))})
		}
	}
	return out
}

// tooLarge returns a sentence about the first resource that a pod requests more of than an empty node of any group has. It
// returns "" when there is none, without groups, and when the template of a group isn't known: that group might be large
// enough.
func tooLarge(p *cluster.Pod, groups []*cluster.NodeGroup) string {
	if len(groups) == 0 || slices.ContainsFunc(groups, templateUnknown) {
		return ""
	}
	for id, needed := range p.Request.All() {
		if most := largestTemplate(groups, id); needed > most {
			return fmt.Sprintf("fits no node group: needs %s %s, largest %s", amount(id.Name(), needed), id.Name(), amount(id.Name(), most))
		}
	}
	return ""
}

// templateUnknown reports whether the provider doesn't say what the nodes of a group have.
func templateUnknown(g *cluster.NodeGroup) bool { return g.Template == nil || g.TemplateError != "" }

// largestTemplate returns the most of a resource that a new node of a group has, all of whose templates are known.
func largestTemplate(groups []*cluster.NodeGroup, id cluster.ResourceID) (most int64) {
	for _, g := range groups {
		most = max(most, g.Template.Allocatable.At(id))
	}
	return most
}
