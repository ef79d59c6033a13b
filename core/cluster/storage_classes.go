package cluster

import storagev1 "k8s.io/api/storage/v1"

// storageClassKind: a class says when and where volumes for a claim are made. A
// local rule may read any class, for a claim of a pod that waits. Parameters are
// the driver's, and may name secrets.
var storageClassKind = kindOf[*storagev1.StorageClass]{
	new: func() *storagev1.StorageClass { return &storagev1.StorageClass{} },
	reads: func(o *storagev1.StorageClass) *storagev1.StorageClass {
		return &storagev1.StorageClass{ObjectMeta: trimMeta(&o.ObjectMeta), Provisioner: o.Provisioner,
			VolumeBindingMode: o.VolumeBindingMode, AllowedTopologies: o.AllowedTopologies}
	},
	local: func(s *State, _ *storagev1.StorageClass, touch func(NodeIndex)) { s.touchAll(touch) },
}

// StorageClass returns a storage class, or nil.
func (s *State) StorageClass(name string) *storagev1.StorageClass {
	return find[*storagev1.StorageClass](s, StorageClassKind, "", name)
}
