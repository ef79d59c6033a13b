package cluster

import storagev1 "k8s.io/api/storage/v1"

// csiDriverKind: a driver says whether it publishes how much storage is left. A
// local rule may read any driver, for a claim of a pod that waits.
var csiDriverKind = kindOf[*storagev1.CSIDriver]{
	new: func() *storagev1.CSIDriver { return &storagev1.CSIDriver{} },
	reads: func(o *storagev1.CSIDriver) *storagev1.CSIDriver {
		return &storagev1.CSIDriver{ObjectMeta: trimMeta(&o.ObjectMeta), Spec: storagev1.CSIDriverSpec{StorageCapacity: o.Spec.StorageCapacity}}
	},
	local: func(s *State, _ *storagev1.CSIDriver, touch func(NodeIndex)) { s.touchAll(touch) },
}

// CSIDriver returns a CSI driver, or nil.
func (s *State) CSIDriver(name string) *storagev1.CSIDriver {
	return find[*storagev1.CSIDriver](s, CSIDriverKind, "", name)
}
