package cluster

import (
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
)

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
