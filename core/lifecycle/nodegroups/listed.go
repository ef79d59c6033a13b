package nodegroups

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/devices"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// This file has what the provider tells of its groups become the state's. What must hold: a
// group's target in the state includes what was ordered, and leaves out what is to be deleted,
// since the provider's list.

// GroupsSet takes what the provider says about its groups. Deletions must have taken it
// before, since it settles those in doubt.
func (m *Machine) GroupsSet(t *lifecycle.Turn, in step.GroupsSet) {
	groups := in.Groups
	m.known = true
	listed := map[string]bool{}
	var registered map[string]int // nodes by group; nil as long as nobody needs it
	for i := range groups {
		g := &groups[i]
		listed[g.ID] = true
		old := t.State.Group(g.ID)
		if m.cfg.ReadOnly && old != nil && g.Target > old.Target {
			m.delaysOf(g.ID).grew = event{t.Now, g.ID}
		}
		m.settleOrders(t, g)
		if g.Target > g.Max && registered == nil {
			registered = nodesByGroup(t.State)
		}
		m.tellTooLarge(t, g, registered[g.ID])
		set(t.State, &cluster.NodeGroup{
			ID: g.ID, Min: g.Min, Max: g.Max, Price: g.Price,
			Target:   m.assumed(g),
			Template: template(t.State, g), TemplateError: g.TemplateError, KeepNodes: g.KeepNodes, Options: g.Options,
			Devices: devices.NewTemplate(g.Devices),
		})
		if old != nil && t.State.Group(g.ID).Template != old.Template {
			m.templateChanged(t.State, g.ID)
		}
		m.onlyNodesGone(t.State, g.ID)
	}
	m.noteUnlisted(t, &in, listed)
	m.watchInstances(t, &in)
}

// tellTooLarge emits an event when a group's target, as the provider says it, is above its
// maximum and the nodes that it has together: no order has led there.
func (m *Machine) tellTooLarge(t *lifecycle.Turn, g *nodegroup.Group, nodes int) {
	x, is := m.group(g.ID), tooLarge{g.Target, g.Max}
	if g.Target-nodes <= g.Max || m.cfg.ReadOnly {
		x.tooLarge = tooLarge{}
		return
	}
	if x.tooLarge == is {
		return
	}
	x.tooLarge = is
	t.Emit(step.StatusEvent(g.ID, "TargetSizeTooLarge", scalingUp, fmt.Sprintf(
		"The provider has a target size of %d for node group %s, above its maximum of %d and its %d registered node(s): set its size at the provider to at most %d, or raise its maximum",
		g.Target, g.ID, g.Max, nodes, g.Max)).AsWarning())
}

// nodesByGroup returns how many nodes each group has, in O(nodes).
func nodesByGroup(s *cluster.State) map[string]int {
	out := map[string]int{}
	s.Nodes(func(n *cluster.Node) { out[n.Group]++ })
	return out
}

// tooLarge is a target that was told to be too large, and the maximum; zero for none.
type tooLarge struct{ target, max int }

// mayBeListed reports whether the last lists don't have a group that the state has.
func (m *Machine) mayBeListed(state *cluster.State, id string) bool {
	g := m.groups[id]
	return g != nil && !g.unlisted.IsZero() && state.Group(id) != nil
}

// groupKept is how long a group that isn't listed is remembered at least: its backoffs hold if it comes
// again.
const groupKept = time.Hour

// noteUnlisted takes groups out of the state that the lists haven't had for nodegroup.GoneAfter, at
// least two in a row: what is on its way out of such a group would stay. Groups that haven't been
// listed for long, and of which nothing is open, are forgotten.
func (m *Machine) noteUnlisted(t *lifecycle.Turn, in *step.GroupsSet, listed map[string]bool) {
	for _, id := range slices.Sorted(maps.Keys(m.groups)) {
		switch g := m.groups[id]; {
		case listed[id]:
			g.unlisted = time.Time{}
		case !in.Says(id):
		case g.unlisted.IsZero():
			g.unlisted = t.Now
		case t.Now.Sub(g.unlisted) < nodegroup.GoneAfter:
		case t.State.Group(id) != nil:
			g.doubt.groupGone(t.Now)
			g.missing, g.listed = nil, nil
			t.State.SetGroup(id, nil)
		case t.Now.Sub(g.unlisted) > max(groupKept, m.cfg.BackoffReset) && g.unanswered == 0 && m.instances.none(id):
			delete(m.groups, id)
			delete(m.lists, id)
			delete(m.gone, id)
			m.launches.ForgetGroup(id)
		}
	}
}

// template returns what a new node of a group looks like. When the provider can't say, the
// last that it said holds for nodes that are coming; so it does when a damaged recording has none.
func template(state *cluster.State, g *nodegroup.Group) *cluster.NodeInfo {
	old := state.Group(g.ID)
	if g.TemplateError == "" && g.Template != nil {
		if old != nil && old.Template.Object == g.Template {
			return old.Template
		}
		return state.Schema.ParseNode(g.Template, g.ID)
	}
	if old != nil {
		return old.Template
	}
	return state.Schema.ParseNode(&v1.Node{}, g.ID)
}

// set records a group in the state unless nothing about it is new. Template, options and devices stay the
// same values as long as they say the same, so that who has read them sees that.
func set(state *cluster.State, g *cluster.NodeGroup) {
	if old := state.Group(g.ID); old != nil {
		if old.Template.SameTemplate(g.Template) {
			g.Template = old.Template
		}
		if reflect.DeepEqual(old.Options, g.Options) {
			g.Options = old.Options
		}
		if old.Devices.Same(g.Devices) {
			g.Devices = old.Devices
		}
		if *old == *g {
			return
		}
	}
	state.SetGroup(g.ID, g)
}

// Retarget adds to the number of nodes that a group is assumed to have.
func (m *Machine) Retarget(t *lifecycle.Turn, id string, delta int) {
	if old := t.State.Group(id); old != nil {
		g := *old
		g.Target = max(g.Target+delta, 0)
		t.State.SetGroup(id, &g)
	}
}
