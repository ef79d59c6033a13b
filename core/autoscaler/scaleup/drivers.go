package scaleup

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
)

// This file says which CSI drivers nodes will have that aren't there yet, or are new. A driver may
// keep pods with its volumes off nodes where it isn't installed (cluster.DriverDemanded), and is
// installed some time after its node is ready. Nodes for such pods could not be bought from zero, or
// would be bought again in that time, if they were judged by what they have now.

// promisedDrivers returns which of the demanded drivers new nodes of each group get: those that one of
// its nodes has, and as long as none of its nodes is old enough to show what they get, those that its
// template declares. A template that declares none is taken to have all.
func (p *promises) promisedDrivers(demanded []string) map[string][]storagev1.CSINodeDriver {
	if len(demanded) == 0 {
		return nil
	}
	out := map[string][]storagev1.CSINodeDriver{}
	grown := p.grown()
	for _, g := range p.state.Groups() {
		for _, name := range demanded {
			if d, ok := p.state.GroupDriver(g.ID, name); ok {
				out[g.ID] = append(out[g.ID], d)
			}
		}
		if grown[g.ID] == 0 {
			out[g.ID] = added(out[g.ID], demanded, declared(g.Template, demanded))
		}
	}
	return out
}

// grown returns how many nodes of each group are ready and so old that all they get is there.
func (p *promises) grown() map[string]int {
	out := map[string]int{}
	p.state.EachGroup(func(g *cluster.NodeGroup) { out[g.ID] = p.state.GroupSize(g.ID) })
	p.state.Unready(func(n *cluster.Node) { out[n.Group]-- })
	notLate(p.state, p.readiness, p.serverNow, func(n *cluster.Node) {
		if n.Ready() && !p.late(n) {
			out[n.Group]--
		}
	})
	return out
}

// added returns a list with those of more that are named and that the list doesn't have yet.
func added(list []storagev1.CSINodeDriver, names []string, more []storagev1.CSINodeDriver) []storagev1.CSINodeDriver {
	for i := range more {
		if slices.Contains(names, more[i].Name) && !has(list, more[i].Name) {
			list = append(list, more[i])
		}
	}
	return list
}

func has(list []storagev1.CSINodeDriver, driver string) bool {
	return slices.ContainsFunc(list, func(d storagev1.CSINodeDriver) bool { return d.Name == driver })
}

// declared returns the CSI drivers that new nodes have by a group's template, which may be nil: those
// of its annotation, or otherwise those whose attach limits it has and all that are demanded. A
// template that can't be read declares none: who reads it from a provider has refused it
// (nodegroup.Group.Validate).
func declared(template *cluster.NodeInfo, demanded []string) []storagev1.CSINodeDriver {
	if template == nil {
		return nil
	}
	list, err := nodegroup.CSIDrivers(template.Object)
	if err != nil || annotatesDrivers(template.Object) {
		return list
	}
	for _, name := range demanded {
		if !has(list, name) {
			list = append(list, storagev1.CSINodeDriver{Name: name})
		}
	}
	return list
}

func annotatesDrivers(template *v1.Node) bool {
	_, ok := template.Annotations[nodegroup.CSIDriversAnnotation]
	return ok
}

// lackingDriver returns that a node lacks a driver which it is promised, for people, "" when it has all.
func (p *promises) lackingDriver(n *cluster.Node) string {
	list := p.drivers[n.Group]
	if len(list) == 0 {
		return ""
	}
	csi := p.state.CSINode(n.Name)
	i := slices.IndexFunc(list, func(x storagev1.CSINodeDriver) bool { return !cluster.DriverInstalled(csi, x.Name) })
	if i < 0 {
		return ""
	}
	return list[i].Name + " CSI driver is not installed"
}

// csiNode returns the CSINode that a new node of a group will have, nil for none: what CSI drivers say
// about the live node, or else what the provider's template says, and the drivers that are expected
// besides.
func (b *builder) csiNode(m *model) *storagev1.CSINode {
	if m.drivers == nil {
		csi := m.key.csi
		if csi == nil {
			csi = &storagev1.CSINode{Spec: storagev1.CSINodeSpec{Drivers: declared(m.group.Template, nil)}}
		}
		m.drivers = withDrivers(csi, b.promises.drivers[m.group.ID])
	}
	if m.key.csi == nil && len(m.drivers.Spec.Drivers) == 0 {
		return nil
	}
	return m.drivers
}

// withDrivers returns a copy of a CSINode with the drivers that it lacks.
func withDrivers(csi *storagev1.CSINode, more []storagev1.CSINodeDriver) *storagev1.CSINode {
	out := *csi
	out.Spec.Drivers = slices.Clone(csi.Spec.Drivers)
	for i := range more {
		if !has(out.Spec.Drivers, more[i].Name) {
			out.Spec.Drivers = append(out.Spec.Drivers, more[i])
		}
	}
	return &out
}

// addDrivers has a node that is starting have the drivers of its group's new nodes, beside its own.
func (b *builder) addDrivers(m *model, name string) {
	drivers := b.csiNode(m)
	if drivers == nil {
		return
	}
	csi := b.State.CSINode(name)
	if csi == nil {
		csi = &storagev1.CSINode{}
	}
	csi = withDrivers(csi, drivers.Spec.Drivers)
	csi.Name = name
	b.State.SetObject(csi)
}
