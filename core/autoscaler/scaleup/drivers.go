package scaleup

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
)

// This file says which CSI drivers nodes will have that aren't there yet, or are new. A driver may
// keep pods with its volumes off nodes where it isn't installed (cluster.DriverDemanded), and is
// installed some time after its node is ready. Nodes for such pods could not be bought from zero, or
// would be bought again in that time, if they were judged by what they have now.

// drivers are the demanded CSI drivers that the nodes of each group get, by the group's ID. Nil: none
// is demanded.
type drivers struct {
	state     *cluster.State
	readiness *autoscaler.Readiness
	serverNow time.Time
	expected  map[string][]storagev1.CSINodeDriver // by name
}

// newDrivers finds, in O(nodes) where drivers are demanded, what is expected of each group: the drivers
// that one of its nodes has, and as long as none of its nodes is old enough to show what they get, those
// that its template declares. A template that declares none is taken to have all.
func newDrivers(s *cluster.State, readiness *autoscaler.Readiness, serverNow time.Time) *drivers {
	demanded := s.DemandedDrivers()
	if len(demanded) == 0 {
		return nil
	}
	d := &drivers{s, readiness, serverNow, map[string][]storagev1.CSINodeDriver{}}
	settled := map[string]bool{}
	s.Nodes(func(n *cluster.Node) {
		g := s.Group(n.Group)
		if g == nil {
			return
		}
		settled[g.ID] = settled[g.ID] || n.Ready() && readiness.Late(n.NodeInfo, g, serverNow)
		if csi := s.CSINode(n.Name); csi != nil {
			d.expected[g.ID] = added(d.expected[g.ID], demanded, csi.Spec.Drivers)
		}
	})
	for _, g := range s.Groups() {
		if !settled[g.ID] {
			d.expected[g.ID] = added(d.expected[g.ID], demanded, declared(g.Template, demanded))
		}
	}
	return d
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

// awaitedOn reports whether a node is new and lacks a driver that nodes of its group get.
func (d *drivers) awaitedOn(n *cluster.Node) bool {
	if d == nil || len(d.expected[n.Group]) == 0 || n.HasTaint(autoscaler.ToBeDeletedTaint) ||
		d.readiness.Late(n.NodeInfo, d.state.Group(n.Group), d.serverNow) {
		return false
	}
	csi := d.state.CSINode(n.Name)
	return slices.ContainsFunc(d.expected[n.Group], func(x storagev1.CSINodeDriver) bool { return !cluster.DriverInstalled(csi, x.Name) })
}

// csiNode returns the CSINode that a new node of a group will have, nil for none: what CSI drivers say
// about the live node, or else what the provider's template says, and the drivers that are expected
// besides.
func (b *builder) csiNode(m *model) *storagev1.CSINode {
	if m.drivers == nil {
		m.drivers = &storagev1.CSINode{}
		if m.key.csi != nil {
			m.drivers = withDrivers(m.key.csi, nil)
		} else {
			m.drivers.Spec.Drivers = declared(m.group.Template, nil)
		}
		if b.drivers != nil {
			m.drivers = withDrivers(m.drivers, b.drivers.expected[m.group.ID])
		}
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
