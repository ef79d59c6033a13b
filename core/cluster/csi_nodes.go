package cluster

import (
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

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

// CSINode returns what CSI drivers say of a node, or nil.
func (s *State) CSINode(node string) *storagev1.CSINode {
	return find[*storagev1.CSINode](s, CSINodeKind, "", node)
}
