package nodegroups

import (
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/devices"
)

// This file keeps which devices nodes of a group have: for each driver what it publishes on the newest
// ready node of the group that has all of it. It is remembered when the node is gone.

// seenDriver is what a driver publishes on nodes of a group.
type seenDriver struct {
	from      *cluster.NodeInfo // the node that has shown it
	published *devices.Published
	on        map[string]bool // the nodes that have it now
}

// groupDevices are the devices of a group's nodes. The zero value has seen none.
type groupDevices struct {
	drivers map[string]*seenDriver
	listed  []autoscaler.SeenDevices // of drivers, by name; a list within isn't changed any more
}

// SliceChanged records that a ResourceSlice has changed, or is gone: either of the two may be nil. The
// state has the change already.
func (m *Machine) SliceChanged(state *cluster.State, now, old *resourcev1.ResourceSlice) {
	for _, s := range [...]*resourcev1.ResourceSlice{old, now} {
		if s == nil || s.Spec.NodeName == nil {
			continue
		}
		if n := state.NodeByName(*s.Spec.NodeName); n != nil {
			m.DevicesShown(state, n.NodeInfo)
		}
	}
}

// DevicesShown records what drivers publish on a node of the state. Of a node that isn't ready, or is on
// its way out, nothing new is learnt.
func (m *Machine) DevicesShown(state *cluster.State, n *cluster.NodeInfo) {
	if before := m.published[n.Name]; before != n.Group {
		m.devicesGone(n.Name)
	}
	drivers := state.Devices().DriversOn(n.Name)
	if n.Group == "" || len(drivers) == 0 && m.published[n.Name] == "" {
		return
	}
	m.published[n.Name] = n.Group
	g := &m.group(n.Group).devices
	shown := n.Ready() && !n.HasTaint(autoscaler.ToBeDeletedTaint)
	for _, driver := range drivers {
		if x := g.drivers[driver]; x == nil && shown {
			if g.drivers == nil {
				g.drivers = map[string]*seenDriver{}
			}
			g.drivers[driver] = &seenDriver{on: map[string]bool{}}
		}
	}
	for driver, x := range g.drivers { // in any order
		is := state.Devices().PublishedOn(n.Name, driver)
		if delete(x.on, n.Name); is == nil {
			continue
		}
		x.on[n.Name] = true
		if shown && autoscaler.Newer(x.from, n) == n {
			if x.from = n; !x.published.Same(is) {
				x.published = is
			}
		}
	}
	g.list()
}

// devicesGone records that a node has no devices any more, since it is gone or is in another group.
func (m *Machine) devicesGone(node string) {
	group, ok := m.published[node]
	if !ok {
		return
	}
	delete(m.published, node)
	if g := m.groups[group]; g != nil {
		for _, x := range g.devices.drivers { // in any order
			delete(x.on, node)
		}
		g.devices.list()
	}
}

// list makes the list anew, if it is another.
func (g *groupDevices) list() {
	var now []autoscaler.SeenDevices
	for _, driver := range slices.Sorted(maps.Keys(g.drivers)) {
		if x := g.drivers[driver]; x.published != nil {
			now = append(now, autoscaler.SeenDevices{Published: x.published, Live: len(x.on) > 0})
		}
	}
	if !slices.Equal(now, g.listed) {
		g.listed = now
	}
}
