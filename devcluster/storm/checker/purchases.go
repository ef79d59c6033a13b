package checker

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// This file counts nodes that were bought. Where each pod takes a whole node of its group and
// all pods of a wave are placed before any of them ends, a wave of n pods needs n nodes, and
// one more was bought twice: by a leader that was deposed, say, and by its successor.

// purchases are the pods and nodes of one group that were created since it was last empty of
// both.
type purchases struct {
	pods, nodes int
	newest      *v1.Node // of the nodes
	by          int64    // the revision by which newest was created
}

// group returns the purchases of a group, nil unless its pods take whole nodes.
func (h *History) group(id string) *purchases {
	if id == "" || h.config.WholeNode == nil || !h.config.WholeNode(id) {
		return nil
	}
	if h.purchases[id] == nil {
		h.purchases[id] = &purchases{}
	}
	return h.purchases[id]
}

// podCreated counts a pod to the purchases of the group that it selects.
func (h *History) podCreated(p *v1.Pod) {
	if g := h.group(p.Spec.NodeSelector[h.config.GroupLabel]); g != nil {
		g.pods++
	}
}

// nodeCreated counts a node to its group's purchases. Nodes are told apart by
// UID: one that comes back under its name was bought anew.
func (h *History) nodeCreated(n *v1.Node, by int64) {
	if g := h.group(n.Labels[h.config.GroupLabel]); g != nil {
		g.nodes++
		g.newest, g.by = n, by
	}
}

// checkPurchases finds groups with more nodes than pods. The pods of a node that was just
// created may not have been observed yet.
func (h *History) checkPurchases(now time.Time) {
	for id, g := range h.purchases {
		if g.nodes > g.pods && h.podsSeen >= g.by {
			h.add(now, BoughtTwice, string(g.newest.UID), "node %s is node number %d of group %s for %d pods that take a node each", g.newest.Name, g.nodes, id, g.pods)
		}
	}
}

// endWaves begins the count of each group anew that has neither nodes nor pods.
func (h *History) endWaves() {
	for id, g := range h.purchases {
		if h.empty(id) {
			g.pods, g.nodes = 0, 0
		}
	}
}

// empty reports whether a group has no node, and no unfinished pod selects it.
func (h *History) empty(id string) bool {
	for _, l := range h.pods {
		if !l.gone && l.pod.Spec.NodeSelector[h.config.GroupLabel] == id {
			return false
		}
	}
	for _, l := range h.nodes {
		if !l.gone && l.node.Labels[h.config.GroupLabel] == id {
			return false
		}
	}
	return true
}

// Wave returns how a group of whole-node pods stands: whether all of its pods have a node, and
// whether it has neither pods nor nodes, so that a new wave may begin.
func (h *History) Wave(id string) (placed, empty bool) {
	placed = true
	for _, l := range h.pods {
		if !l.gone && l.pod.Spec.NodeSelector[h.config.GroupLabel] == id && l.pod.Spec.NodeName == "" {
			placed = false
		}
	}
	return placed, h.empty(id)
}
