package cluster

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// This file holds the objects beside claims and volumes that rules of storage read.

// storageClassKind: a class says when and where volumes for a claim are made. A
// local rule may read any class, for a claim of a pod that waits. Parameters are
// the driver's, and may name secrets.
var storageClassKind = kindOf[*storagev1.StorageClass]{
	new: func() *storagev1.StorageClass { return &storagev1.StorageClass{} },
	reads: func(o *storagev1.StorageClass) *storagev1.StorageClass {
		return &storagev1.StorageClass{ObjectMeta: trimMeta(&o.ObjectMeta), Provisioner: o.Provisioner,
			VolumeBindingMode: o.VolumeBindingMode, AllowedTopologies: o.AllowedTopologies}
	},
	everywhere: true,
}

// StorageClass returns a storage class, or nil.
func (s *State) StorageClass(name string) *storagev1.StorageClass {
	return find[*storagev1.StorageClass](s, StorageClassKind, "", name)
}

// csiDriverKind: a driver says whether it publishes how much storage is left, and whether
// pods with its volumes need it installed on their node. A local rule may read any driver,
// for a claim of a pod that waits.
var csiDriverKind = kindOf[*storagev1.CSIDriver]{
	new: func() *storagev1.CSIDriver { return &storagev1.CSIDriver{} },
	reads: func(o *storagev1.CSIDriver) *storagev1.CSIDriver {
		return &storagev1.CSIDriver{ObjectMeta: trimMeta(&o.ObjectMeta), Spec: storagev1.CSIDriverSpec{
			StorageCapacity: o.Spec.StorageCapacity, PreventPodSchedulingIfMissing: o.Spec.PreventPodSchedulingIfMissing}}
	},
	lookUp: func(b *objects, o *storagev1.CSIDriver, sign int) {
		if DriverDemanded(o) {
			addTo(b.demanded, o.Name, sign)
		}
	},
	everywhere: true,
}

// CSIDriver returns a CSI driver, or nil.
func (s *State) CSIDriver(name string) *storagev1.CSIDriver {
	return find[*storagev1.CSIDriver](s, CSIDriverKind, "", name)
}

// DriverDemanded reports whether pods with volumes of a driver need it installed on their node. d may
// be nil.
func DriverDemanded(d *storagev1.CSIDriver) bool {
	return d != nil && d.Spec.PreventPodSchedulingIfMissing != nil && *d.Spec.PreventPodSchedulingIfMissing
}

// DemandedDrivers returns the names of the CSI drivers that pods need installed on their node, sorted.
func (s *State) DemandedDrivers() []string {
	if len(s.objects.demanded) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(s.objects.demanded))
}

// DriverInstalled reports whether a driver has registered with a node. n may be nil.
func DriverInstalled(n *storagev1.CSINode, driver string) bool {
	return n != nil && slices.ContainsFunc(n.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver })
}

// csiNodeKind: a CSINode says how many volumes of each driver its node takes, and
// which in-tree plugins have moved to drivers there. Local rules of that node
// read it.
var csiNodeKind = kindOf[*storagev1.CSINode]{
	new: func() *storagev1.CSINode { return &storagev1.CSINode{} },
	reads: func(o *storagev1.CSINode) *storagev1.CSINode {
		out := &storagev1.CSINode{ObjectMeta: trimMeta(&o.ObjectMeta)}
		out.Annotations = annotated(o.Annotations, v1.MigratedPluginsAnnotationKey)
		for i := range o.Spec.Drivers {
			d := storagev1.CSINodeDriver{Name: o.Spec.Drivers[i].Name}
			if a := o.Spec.Drivers[i].Allocatable; a != nil && a.Count != nil {
				d.Allocatable = &storagev1.VolumeNodeResources{Count: a.Count}
			}
			out.Spec.Drivers = append(out.Spec.Drivers, d)
		}
		return out
	},
	local: func(s *State, o *storagev1.CSINode, touch func(NodeIndex)) { s.touchNamed(o.Name, touch) },
}

// CSINode returns what CSI drivers say about a node, or nil.
func (s *State) CSINode(node string) *storagev1.CSINode {
	return find[*storagev1.CSINode](s, CSINodeKind, "", node)
}

// storageCapacityKind: a capacity says how much storage of a class is left where
// some nodes can reach it (KEP-1472). Local rules of those nodes read it.
var storageCapacityKind = kindOf[*storagev1.CSIStorageCapacity]{
	new: func() *storagev1.CSIStorageCapacity { return &storagev1.CSIStorageCapacity{} },
	reads: func(o *storagev1.CSIStorageCapacity) *storagev1.CSIStorageCapacity {
		return &storagev1.CSIStorageCapacity{ObjectMeta: trimMeta(&o.ObjectMeta), NodeTopology: o.NodeTopology,
			StorageClassName: o.StorageClassName, Capacity: o.Capacity, MaximumVolumeSize: o.MaximumVolumeSize}
	},
	lookUp: func(b *objects, o *storagev1.CSIStorageCapacity, sign int) {
		enlist(b.capacities, o.StorageClassName, o, sign)
	},
	local: func(s *State, o *storagev1.CSIStorageCapacity, touch func(NodeIndex)) {
		reaches := selectorOf(o.NodeTopology)
		s.touchWhere(func(n *Node) bool { return reaches.Matches(labels.Set(n.Object.Labels)) }, touch)
	},
}

// Capacities returns what storage is left for a class, by name. The list is
// valid until the next change.
func (s *State) Capacities(class string) []*storagev1.CSIStorageCapacity {
	return s.objects.capacities[class]
}

// attachmentKind: an attachment says that a volume is attached to a node, or is to
// be. Local rules of that node read it. A volume that stands in the attachment
// itself, which only migration makes, isn't read, and may name secrets.
var attachmentKind = kindOf[*storagev1.VolumeAttachment]{
	new: func() *storagev1.VolumeAttachment { return &storagev1.VolumeAttachment{} },
	reads: func(o *storagev1.VolumeAttachment) *storagev1.VolumeAttachment {
		return &storagev1.VolumeAttachment{ObjectMeta: trimMeta(&o.ObjectMeta), Spec: storagev1.VolumeAttachmentSpec{
			Attacher: o.Spec.Attacher, NodeName: o.Spec.NodeName,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: o.Spec.Source.PersistentVolumeName}}}
	},
	lookUp: func(b *objects, o *storagev1.VolumeAttachment, sign int) {
		enlist(b.attachmentsByNode, o.Spec.NodeName, o, sign)
		if volume := o.Spec.Source.PersistentVolumeName; volume != nil {
			enlist(b.attachmentsByVolume, *volume, o, sign)
		}
	},
	local: func(s *State, o *storagev1.VolumeAttachment, touch func(NodeIndex)) {
		s.touchNamed(o.Spec.NodeName, touch)
	},
}

// Attachments returns the volume attachments to a node, by name. The list is
// valid until the next change.
func (s *State) Attachments(node string) []*storagev1.VolumeAttachment {
	return s.objects.attachmentsByNode[node]
}
