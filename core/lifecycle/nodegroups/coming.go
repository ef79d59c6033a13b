package nodegroups

import (
	"time"

	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/launching"
)

// This file counts the nodes that are coming, for launch control. It is asked for each instance that
// fails and for each proposal of a plan: nodes are looked at once for each time, and again only when
// nodes or templates have changed; after that a group is counted anew when its target or its
// instances have changed.

// coming is what is known of nodes that are coming. The zero value has counted nothing.
type comingNodes struct {
	counted        bool
	at             cluster.Seq // up to which the state's changes are counted
	now, serverNow time.Time
	groups         map[string]*scaleup.Coming
	nodes          launching.Coming
	looked         int // at nodes and groups, in all; tests bound it
}

// Coming returns how many nodes of each group were ordered and aren't ready, until the next change:
// nobody may keep it. It costs O(nodes) at the first call of each time, then O(changes).
func (m *Machine) Coming(t *lifecycle.Turn) launching.Coming {
	c := &m.coming
	if t.State.MarkOpen() {
		c.counted = false // what has changed is rolled back
		return m.countComing(t)
	}
	if changes, ok := t.State.Since(c.at); !ok || !c.counted || !c.now.Equal(t.Now) || !c.serverNow.Equal(t.ServerNow()) || !m.noteTargets(changes) {
		m.countComing(t)
		c.counted, c.now, c.serverNow = true, t.Now, t.ServerNow()
	}
	for id := range m.instances.changed { // in any order
		if g := t.State.Group(id); g != nil {
			condition := m.condition(t.Now, id)
			c.groups[id].Expect(g, &condition)
			c.nodes.Set(id, c.groups[id].Nodes())
			c.looked++
		}
	}
	clear(m.instances.changed)
	c.at = t.State.Head()
	return c.nodes
}

// countComing counts from the beginning.
func (m *Machine) countComing(t *lifecycle.Turn) launching.Coming {
	c := &m.coming
	c.groups = scaleup.Survey(t.State, m.Conditions(t.Now), &m.cfg.Readiness, t.ServerNow())
	c.nodes = launching.Coming{}
	for id, g := range c.groups {
		c.nodes.Set(id, g.Nodes())
		c.looked += g.Registered + 1
	}
	return c.nodes
}

// noteTargets notes the groups whose target has changed. It returns false when more than that has
// changed, so that nodes have to be looked at again.
func (m *Machine) noteTargets(changes []cluster.Change) bool {
	for i := range changes {
		switch c := &changes[i]; c.Op {
		case cluster.NodeAdded, cluster.NodeRemoved, cluster.NodeUpdated:
			return false
		case cluster.ObjectSet:
			switch k := c.Object.Kind(); {
			case m.cfg.Readiness.Parts.Has(cluster.CSIDrivers) && (k == cluster.CSINodeKind || k == cluster.CSIDriverKind):
				return false // a node may wait for a driver, or no more
			case m.cfg.Readiness.Parts.Has(cluster.Devices) && (k == cluster.ResourceSliceKind || k == cluster.DeviceClassKind):
				return false // a node may wait for its devices, or no more
			}
		case cluster.GroupSet:
			if c.Group == nil || c.OldGroup == nil || c.Group.Template != c.OldGroup.Template || c.Group.Options != c.OldGroup.Options || c.Group.Devices != c.OldGroup.Devices {
				return false
			}
			m.instances.note(c.Group.ID)
		}
	}
	return true
}
