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

// Annotations of claims and volumes, as the controllers of Kubernetes write them.
const (
	// AnnBindCompleted is on claims whose binding to a volume is complete.
	AnnBindCompleted = "pv.kubernetes.io/bind-completed"
	// AnnBoundByController is on volumes and claims that a controller bound to each
	// other.
	AnnBoundByController = "pv.kubernetes.io/bound-by-controller"
	// AnnSelectedNode is on claims that are to be provisioned for a node, which it
	// names.
	AnnSelectedNode = "volume.kubernetes.io/selected-node"
)

// ClaimBound tells whether a claim is completely bound to a volume.
func ClaimBound(c *v1.PersistentVolumeClaim) bool {
	_, completed := c.Annotations[AnnBindCompleted]
	return completed && c.Spec.VolumeName != ""
}

// VolumeAffinity is a volume's node affinity, parsed. The zero value admits
// every node.
type VolumeAffinity struct {
	selector *nodeaffinity.LazyErrorNodeSelector
}

// ParseVolumeAffinity reads a volume's node affinity.
func ParseVolumeAffinity(v *v1.PersistentVolume) (out VolumeAffinity) {
	if a := v.Spec.NodeAffinity; a != nil && a.Required != nil {
		out.selector = nodeaffinity.NewLazyErrorNodeSelector(a.Required)
	}
	return out
}

// Admits tells whether the affinity admits a node. Labels are all that it reads
// of the node. A selector that doesn't parse admits none.
func (a VolumeAffinity) Admits(n *NodeInfo) bool {
	if a.selector == nil {
		return true
	}
	labelled := v1.Node{}
	labelled.Labels = n.Object.Labels
	ok, err := a.selector.Match(&labelled)
	return ok && err == nil
}

// VolumeAdmits tells whether a volume's node affinity admits a node.
func VolumeAdmits(v *v1.PersistentVolume, n *NodeInfo) bool {
	return ParseVolumeAffinity(v).Admits(n)
}
