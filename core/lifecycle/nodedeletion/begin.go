package nodedeletion

// This file begins deletions: of those nodes that candidates say are due, as many as may go at
// a time. What must be true of a node that begins: it is as the plan saw it, its group may
// shrink by it, and there are homes for all pods that have to leave it. A node of which that
// isn't true is left to the next plan.

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/candidates"
	"github.com/berthproject/berth/core/step"
)

// Begin begins to delete those nodes whose time has come and of which the plan is still true.
// Empty nodes come first, up to MaxDeletions; then those with pods to be evicted, up to
// MaxDrains of them. Nodes that are on their way out already count. The nodes of an atomic
// group, and those whose pods leave together, begin all together, whatever these limits say, or not at
// all.
func (m *Machine) Begin(t *lifecycle.Turn, due []candidates.Due) {
	before := m.homeless
	m.homeless = nil
	groups := map[string][]*candidates.Due{} // the atomic ones
	sets := map[string][]*candidates.Due{}   // of nodes whose pods leave together
	var empty, occupied []*candidates.Due
	for i := range due {
		x := &due[i]
		n := t.State.NodeByName(x.Node)
		if n == nil || !m.asPlanned(t, n, x) {
			continue
		}
		switch g := t.State.Group(n.Group); {
		case atomic(g):
			groups[g.ID] = append(groups[g.ID], x)
		case len(x.With) > 0:
			sets[setOf(x.With)] = append(sets[setOf(x.With)], x)
		case x.Empty():
			empty = append(empty, x)
		default:
			occupied = append(occupied, x)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(groups)) {
		m.beginGroup(t, t.State.Group(id), groups[id], before)
	}
	for _, key := range slices.Sorted(maps.Keys(sets)) {
		if set := sets[key]; len(set) == len(set[0].With) && m.mayAllShrink(t, set) {
			m.beginAll(t, set, before)
		}
	}
	going, draining := m.counts()
	for _, x := range append(empty, occupied...) {
		if going >= m.cfg.MaxDeletions {
			return
		}
		g := t.State.Group(t.State.NodeByName(x.Node).Group)
		if !x.Empty() && draining >= m.cfg.MaxDrains || !m.mayShrink(t, g, 1) {
			continue
		}
		if why := m.keepHomes(t, x); why != "" {
			m.leaveHomeless(t, x.Node, why, before)
			continue
		}
		m.begin(t, x)
		going++
		if !x.Empty() {
			draining++
		}
	}
}

// atomic reports whether a group, which may be nil, goes as a whole.
func atomic(g *cluster.NodeGroup) bool { return g != nil && g.Options != nil && g.Options.ZeroOrMax }

// counts returns how many nodes are on their way out, and how many of them have, or had, pods
// to be evicted. One that the provider has deleted is neither, however long the API still has its
// Node object; one that stays is no drain any more.
func (m *Machine) counts() (all, draining int) {
	for _, d := range m.deletions {
		_, asked := d.asked()
		if d.drains() && (asked || d.planned()) {
			draining++
		}
		if _, done := d.state.(deleted); !done {
			all++
		}
	}
	return all, draining
}

// asPlanned reports whether a node is in a group that may shrink now, isn't on its way out, and
// has no pod that would have to be evicted beside those that the plan has homes for.
func (m *Machine) asPlanned(t *lifecycle.Turn, n *cluster.Node, x *candidates.Due) bool {
	return m.deletions[n.Name] == nil && taintOf(n.Object) < 0 && t.State.Group(n.Group) != nil && len(x.WaitsFor) == 0 &&
		!m.groups.ScaleDownDelayed(t.Now, n.Group) && m.whyStays(t, n, func(uid types.UID) bool {
		return slices.ContainsFunc(x.Homes, func(h autoscaler.Home) bool { return h.Pod == uid })
	}) == ""
}

// mayShrink reports whether a group stays at or above its minimum when so many more of its nodes
// go.
func (m *Machine) mayShrink(t *lifecycle.Turn, g *cluster.NodeGroup, nodes int) bool {
	return g.Target-m.Planned(g.ID)-nodes >= g.Min
}

// beginGroup begins the deletion of all nodes of an atomic group, if all of them are due.
func (m *Machine) beginGroup(t *lifecycle.Turn, g *cluster.NodeGroup, due []*candidates.Due, before map[string]string) {
	nodes := 0
	t.State.Nodes(func(n *cluster.Node) {
		if n.Group == g.ID {
			nodes++
		}
	})
	if len(due) < nodes || !m.mayShrink(t, g, len(due)) || !closed(due) {
		return
	}
	m.beginAll(t, due, before)
}

// closed reports whether all nodes that go together with nodes of a list are on it.
func closed(due []*candidates.Due) bool {
	return !slices.ContainsFunc(due, func(x *candidates.Due) bool {
		return slices.ContainsFunc(x.With, func(name string) bool {
			return !slices.ContainsFunc(due, func(y *candidates.Due) bool { return y.Node == name })
		})
	})
}

// mayAllShrink reports whether the groups of some nodes may shrink by all of these.
func (m *Machine) mayAllShrink(t *lifecycle.Turn, due []*candidates.Due) bool {
	of := map[string]int{}
	for _, x := range due {
		of[t.State.NodeByName(x.Node).Group]++
	}
	for id, nodes := range of { // in any order
		if !m.mayShrink(t, t.State.Group(id), nodes) {
			return false
		}
	}
	return true
}

// setOf returns what tells nodes that go together from others.
func setOf(names []string) string { return strings.Join(names, ",") }

// beginAll begins the deletion of nodes, of all or of none. before are the nodes that the last plan left
// for want of homes.
func (m *Machine) beginAll(t *lifecycle.Turn, due []*candidates.Due, before map[string]string) {
	for i, x := range due {
		why := m.keepHomes(t, x)
		if why == "" {
			continue
		}
		for _, kept := range due[:i] {
			m.homes.ReleaseUnevicted(t, kept.Node)
		}
		for _, other := range due {
			m.leaveHomeless(t, other.Node, why, before)
		}
		return
	}
	for _, x := range due {
		m.begin(t, x)
	}
}

// keepHomes has room kept for the pods that are to be evicted. It returns why not, "" when all is
// kept.
func (m *Machine) keepHomes(t *lifecycle.Turn, x *candidates.Due) (why string) {
	if x.Empty() {
		return ""
	}
	return m.homes.Reserve(t, x.Removal)
}

// leaveHomeless notes that a node, though it is due, is left to the next plan, since no room is
// kept for its pods. The ledger gets the reason when it begins: unless before, the nodes that
// the plan before this one left so, has the node.
func (m *Machine) leaveHomeless(t *lifecycle.Turn, node, why string, before map[string]string) {
	if before[node] == "" {
		t.Decide(step.Decision{Kind: step.NodeStays, Node: node, Group: t.State.NodeByName(node).Group, Reason: string(autoscaler.KeptNoPlace) + ": " + why})
	}
	if m.homeless == nil {
		m.homeless = map[string]string{}
	}
	m.homeless[node] = why
}

// Homeless returns why a node that is due was left by the last plan for want of room for its
// pods; "" when it wasn't.
func (m *Machine) Homeless(node string) (why string) { return m.homeless[node] }

// BeginInterrupted begins to remove a node that the cloud is about to take, with the pods that have to
// leave; not all of them need have homes. Limits on how many nodes may go at a time, delays and node
// budgets don't hold: the cloud doesn't wait. It returns why not, "" when it has begun.
func (m *Machine) BeginInterrupted(t *lifecycle.Turn, r *autoscaler.Removal, why string) (stays string) {
	n := t.State.NodeByName(r.Node)
	group := t.State.Group(n.Group)
	switch {
	case m.deletions[n.Name] != nil:
		return "an earlier removal of it is being undone"
	case taintOf(n.Object) >= 0:
		return "another client is removing it"
	case !m.groups.Known():
		return "the provider has not listed its node groups yet"
	case atomic(group):
		return "its node group is removed as a whole or not at all"
	}
	if stays = m.whyStays(t, n, func(uid types.UID) bool {
		return slices.ContainsFunc(r.Homes, func(h autoscaler.Home) bool { return h.Pod == uid })
	}); stays != "" {
		return stays
	}
	if !m.mayShrink(t, group, 1) {
		return "its node group is at its minimum"
	}
	m.mark(t, r, why, why)
	m.deletions[n.Name].interrupted = true
	return ""
}

// Leaving reports whether a node is on its way out.
func (m *Machine) Leaving(node string) bool {
	d := m.deletions[node]
	return d != nil && !d.stays()
}

// begin has the node marked.
func (m *Machine) begin(t *lifecycle.Turn, x *candidates.Due) {
	m.mark(t, x.Removal, x.Why, fmt.Sprintf("%s for %s", x.Why, x.For))
}

// mark has a node marked, for a reason and with a note about it.
func (m *Machine) mark(t *lifecycle.Turn, r *autoscaler.Removal, why, note string) {
	n := t.State.NodeByName(r.Node)
	t.Decide(step.Decision{Kind: step.NodeTainted, Node: n.Name, Group: n.Group, Reason: note})
	d := &deletion{group: n.Group, marking: marking{deletionTaint(t.Now), !m.cfg.KeepSchedulable, note}, why: why, homes: homesOf(r), with: setOf(r.With), state: tainting{}}
	m.enter(n.Name, d)
	t.Ready.Taints = append(t.Ready.Taints, d.put(n.Name))
	tellBegun(t, r)
	t.State.SetNode(d.on(n.NodeInfo))
}
