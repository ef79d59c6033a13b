package candidates

// This file checks what must be true of candidates and their soft taints between two Steps.
// Tests call it after every one.

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// Invariants checks that each candidate has a time and is known to the soft taints, that no
// more of these are written at a time than may be, and that each node is once among those
// that may differ, none of which waits for nothing.
func (m *Machine) Invariants() (out []string) {
	if s := &m.soft; len(s.differ) != len(s.queued) || len(s.differ) > 0 && s.steerAfter.IsZero() {
		out = append(out, fmt.Sprintf("%d nodes, of which %d different ones, wait for their soft taints in the state, until %s", len(s.differ), len(s.queued), s.steerAfter))
	}
	for _, name := range slices.Sorted(maps.Keys(m.byName)) {
		if m.byName[name].since.IsZero() {
			out = append(out, fmt.Sprintf("node %s is a candidate since no time", name))
		}
		if m.cfg.MaxBulk > 0 && m.soft.nodes[name] == nil {
			out = append(out, fmt.Sprintf("node %s is a candidate, and nobody writes its soft taint", name))
		}
	}
	if n := len(m.soft.writing); n > m.atOnce() {
		out = append(out, fmt.Sprintf("%d soft taints are being written, and %d may be", n, m.atOnce()))
	}
	return out
}

// InvariantsIn checks that the state's nodes have the soft taints that they are to have, that
// each soft taint on a node of a group is known, and that no node is remembered for none. Of
// nodes that a bulk of the state has yet to come to, nothing is said.
func (m *Machine) InvariantsIn(state *cluster.State) (out []string) {
	if m.plans == 0 {
		return nil
	}
	if m.cfg.NoSoftTaints {
		if n := len(m.soft.nodes); n > 0 {
			out = append(out, fmt.Sprintf("the soft taints of %d nodes are followed, and they are somebody else's", n))
		}
		return out
	}
	state.Nodes(func(n *cluster.Node) {
		has, s := markOf(n.NodeInfo), m.soft.nodes[n.Name]
		_, writing := m.soft.writing[n.Name]
		switch {
		case n.HasTaint(autoscaler.ToBeDeletedTaint):
		case m.soft.queued[n.Name]: // a bulk of the state comes to it
		case s != nil && has != m.want(n.Name):
			out = append(out, fmt.Sprintf("the soft taint of node %s is %s in the state; it should be %s", n.Name, has, m.want(n.Name)))
		case s == nil && has != mark{} && n.Group != "":
			out = append(out, fmt.Sprintf("the soft taint of node %s is %s in the state, and nobody takes it off", n.Name, has))
		case s != nil && has == mark{} && s.api == mark{} && !s.failed && !writing:
			out = append(out, fmt.Sprintf("node %s has no soft taint, is to have none, and is remembered", n.Name))
		}
	})
	return out
}
