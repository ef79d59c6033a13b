package scaleup

import (
	"slices"
	"strings"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/devices"
)

// This file says which devices nodes will have that aren't there yet, or are new. Drivers publish the
// devices of a node some time after it is ready: nodes for pods with claims could not be bought from
// zero, or would be bought again in that time, if they were judged by what they have now.

// promisedDevices returns what drivers will publish on new nodes of each group, by driver. Of each driver
// the first of these counts that there is:
//
//  1. what it publishes now on the newest node of the group that it publishes anything on;
//  2. what it did when there was such a node;
//  3. what is declared (--node-device-templates, or the provider).
//
// A driver that publishes nothing now is promised as long as no node of the group is old enough to show
// what its nodes get.
func (p *promises) promisedDevices(conditions map[string]autoscaler.GroupCondition) map[string][]*devices.Published {
	out := map[string][]*devices.Published{}
	grown := p.grown()
	p.state.EachGroup(func(g *cluster.NodeGroup) {
		young := grown[g.ID] == 0
		var list []*devices.Published
		for _, seen := range conditions[g.ID].Devices {
			if seen.Live || young {
				list = append(list, seen.Published)
			}
		}
		if young && g.Devices != nil {
			for _, d := range g.Devices.Drivers {
				if !slices.ContainsFunc(list, func(x *devices.Published) bool { return x.Driver == d.Driver }) {
					list = append(list, d)
				}
			}
			slices.SortFunc(list, func(a, b *devices.Published) int { return strings.Compare(a.Driver, b.Driver) })
		}
		if list != nil {
			out[g.ID] = list
		}
	})
	return out
}

// lackingDevices returns whose devices a node lacks that it is promised, for people, "" when it has all.
func (p *promises) lackingDevices(n *cluster.Node) string {
	for _, d := range p.devices[n.Group] {
		if !p.state.Devices().Publishes(n.Name, d) {
			return "devices of " + d.Driver + " are not published"
		}
	}
	return ""
}

// addDevices lets a node have the devices of its group's new nodes, of the drivers that haven't published
// theirs yet. What such a driver has published so far goes: the rest of its pools is still to come.
func (b *builder) addDevices(m *model, name string) {
	inventory := b.State.Devices()
	for _, d := range b.promises.devices[m.group.ID] {
		if inventory.Publishes(name, d) {
			continue
		}
		for _, s := range inventory.SlicesOn(name, d.Driver) {
			b.State.RemoveObject(cluster.ResourceSliceKind, "", s.Name)
		}
		for _, s := range d.On(name) {
			b.State.SetObject(s)
		}
	}
}
