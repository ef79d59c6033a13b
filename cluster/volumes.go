package cluster

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// ClaimClass returns the storage class that a claim asks for, "" for none: the
// beta annotation wins over the field.
func ClaimClass(c *v1.PersistentVolumeClaim) string {
	if class, ok := c.Annotations[v1.BetaStorageClassAnnotation]; ok {
		return class
	}
	if c.Spec.StorageClassName != nil {
		return *c.Spec.StorageClassName
	}
	return ""
}

// VolumeClass returns the storage class of a volume, "" for none.
func VolumeClass(v *v1.PersistentVolume) string {
	if class, ok := v.Annotations[v1.BetaStorageClassAnnotation]; ok {
		return class
	}
	return v.Spec.StorageClassName
}

// VolumeAdmits tells whether a volume's node affinity admits a node. Labels are
// all that it reads of the node. A selector that doesn't parse admits none.
func VolumeAdmits(v *v1.PersistentVolume, n *NodeInfo) bool {
	a := v.Spec.NodeAffinity
	if a == nil || a.Required == nil {
		return true
	}
	labelled := v1.Node{}
	labelled.Labels = n.Object.Labels
	ok, err := nodeaffinity.NewLazyErrorNodeSelector(a.Required).Match(&labelled)
	return ok && err == nil
}
