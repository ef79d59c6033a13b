package testkit

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// This file builds the objects that rules of storage read. Claims are of namespace
// "default".

// ClaimBuilder builds a PersistentVolumeClaim.
type ClaimBuilder struct{ v1.PersistentVolumeClaim }

// Claim starts a pending claim of a class for 1Gi, ReadWriteOnce.
func Claim(name, class string) *ClaimBuilder {
	b := &ClaimBuilder{}
	b.Namespace, b.Name, b.UID = "default", name, types.UID("claim-"+name)
	b.Spec.StorageClassName = &class
	b.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	b.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	b.Status.Phase = v1.ClaimPending
	return b
}

// Size sets what is requested.
func (b *ClaimBuilder) Size(q string) *ClaimBuilder {
	b.Spec.Resources.Requests[v1.ResourceStorage] = resource.MustParse(q)
	return b
}

// Modes sets the access modes.
func (b *ClaimBuilder) Modes(modes ...v1.PersistentVolumeAccessMode) *ClaimBuilder {
	b.Spec.AccessModes = modes
	return b
}

// Bound binds the claim to a volume, as it is when the PV controller has finished.
func (b *ClaimBuilder) Bound(volume string) *ClaimBuilder {
	b.Spec.VolumeName, b.Status.Phase = volume, v1.ClaimBound
	return b.Annotation("pv.kubernetes.io/bind-completed", "yes")
}

// Annotation sets an annotation.
func (b *ClaimBuilder) Annotation(k, v string) *ClaimBuilder {
	metav1.SetMetaDataAnnotation(&b.ObjectMeta, k, v)
	return b
}

// SelectedNode sets the node for which the claim is to be provisioned.
func (b *ClaimBuilder) SelectedNode(node string) *ClaimBuilder {
	return b.Annotation("volume.kubernetes.io/selected-node", node)
}

// MadeFor makes the pod of that name the claim's controller, as the claim of an ephemeral
// volume has it.
func (b *ClaimBuilder) MadeFor(pod string) *ClaimBuilder {
	b.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod, UID: types.UID("pod-" + pod), Controller: new(true)}}
	return b
}

// With changes the object by a function, where no method does.
func (b *ClaimBuilder) With(change func(*v1.PersistentVolumeClaim)) *ClaimBuilder {
	change(&b.PersistentVolumeClaim)
	return b
}

// Obj returns the claim.
func (b *ClaimBuilder) Obj() *v1.PersistentVolumeClaim { return &b.PersistentVolumeClaim }

// VolumeBuilder builds a PersistentVolume.
type VolumeBuilder struct{ v1.PersistentVolume }

// Volume starts an available volume of a class with 1Gi, ReadWriteOnce, of the driver
// csi.example, that can be attached to any node.
func Volume(name, class string) *VolumeBuilder {
	b := &VolumeBuilder{}
	b.Name, b.UID = name, types.UID("volume-"+name)
	b.Spec.StorageClassName = class
	b.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	b.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	b.Status.Phase = v1.VolumeAvailable
	return b.CSI("csi.example", name)
}

// Size sets the capacity.
func (b *VolumeBuilder) Size(q string) *VolumeBuilder {
	b.Spec.Capacity[v1.ResourceStorage] = resource.MustParse(q)
	return b
}

// Modes sets the access modes.
func (b *VolumeBuilder) Modes(modes ...v1.PersistentVolumeAccessMode) *VolumeBuilder {
	b.Spec.AccessModes = modes
	return b
}

// Source sets the source, which replaces the one before.
func (b *VolumeBuilder) Source(s v1.PersistentVolumeSource) *VolumeBuilder {
	b.Spec.PersistentVolumeSource = s
	return b
}

// CSI sets a CSI driver as the source.
func (b *VolumeBuilder) CSI(driver, handle string) *VolumeBuilder {
	return b.Source(v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}})
}

// In requires a label of the node to have one of the values.
func (b *VolumeBuilder) In(key string, values ...string) *VolumeBuilder {
	b.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{labelIn(key, values)}}}
	return b
}

// Label sets a label.
func (b *VolumeBuilder) Label(k, v string) *VolumeBuilder {
	metav1.SetMetaDataLabel(&b.ObjectMeta, k, v)
	return b
}

// Phase sets the phase.
func (b *VolumeBuilder) Phase(p v1.PersistentVolumePhase) *VolumeBuilder {
	b.Status.Phase = p
	return b
}

// ClaimedBy sets the claim that the volume is for, by name and UID, which may be
// empty.
func (b *VolumeBuilder) ClaimedBy(claim, uid string) *VolumeBuilder {
	b.Spec.ClaimRef = &v1.ObjectReference{Namespace: "default", Name: claim, UID: types.UID(uid)}
	return b
}

// With changes the object by a function, where no method does.
func (b *VolumeBuilder) With(change func(*v1.PersistentVolume)) *VolumeBuilder {
	change(&b.PersistentVolume)
	return b
}

// Obj returns the volume.
func (b *VolumeBuilder) Obj() *v1.PersistentVolume { return &b.PersistentVolume }

// ClassBuilder builds a StorageClass.
type ClassBuilder struct{ storagev1.StorageClass }

// Class starts a storage class whose claims wait for their first consumer.
func Class(name, provisioner string) *ClassBuilder {
	b := &ClassBuilder{}
	b.Name, b.Provisioner = name, provisioner
	return b.Mode(storagev1.VolumeBindingWaitForFirstConsumer)
}

// Mode sets the volume binding mode.
func (b *ClassBuilder) Mode(m storagev1.VolumeBindingMode) *ClassBuilder {
	b.VolumeBindingMode = &m
	return b
}

// Allowed adds a topology in which volumes may be provisioned.
func (b *ClassBuilder) Allowed(demands ...v1.TopologySelectorLabelRequirement) *ClassBuilder {
	b.AllowedTopologies = append(b.AllowedTopologies, v1.TopologySelectorTerm{MatchLabelExpressions: demands})
	return b
}

// With changes the object by a function, where no method does.
func (b *ClassBuilder) With(change func(*storagev1.StorageClass)) *ClassBuilder {
	change(&b.StorageClass)
	return b
}

// Obj returns the storage class.
func (b *ClassBuilder) Obj() *storagev1.StorageClass { return &b.StorageClass }

// CSINodeBuilder builds a CSINode.
type CSINodeBuilder struct{ storagev1.CSINode }

// CSINode starts the CSINode of a node, without drivers.
func CSINode(node string) *CSINodeBuilder {
	b := &CSINodeBuilder{}
	b.Name = node
	return b
}

// Driver adds a driver with a limit of volumes; a negative limit stands for none.
func (b *CSINodeBuilder) Driver(name string, limit int32) *CSINodeBuilder {
	d := storagev1.CSINodeDriver{Name: name, NodeID: b.Name}
	if limit >= 0 {
		d.Allocatable = &storagev1.VolumeNodeResources{Count: &limit}
	}
	b.Spec.Drivers = append(b.Spec.Drivers, d)
	return b
}

// Migrated sets the in-tree plugins that are migrated to CSI on the node, separated by
// commas.
func (b *CSINodeBuilder) Migrated(plugins string) *CSINodeBuilder {
	metav1.SetMetaDataAnnotation(&b.ObjectMeta, v1.MigratedPluginsAnnotationKey, plugins)
	return b
}

// With changes the object by a function, where no method does.
func (b *CSINodeBuilder) With(change func(*storagev1.CSINode)) *CSINodeBuilder {
	change(&b.CSINode)
	return b
}

// Obj returns the CSINode.
func (b *CSINodeBuilder) Obj() *storagev1.CSINode { return &b.CSINode }

// CSIDriver returns a driver that publishes its capacity, or doesn't.
func CSIDriver(name string, capacity bool) *storagev1.CSIDriver {
	d := &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{StorageCapacity: &capacity}}
	d.Name = name
	return d
}

// Demanded has a driver keep pods with its volumes off nodes where it isn't installed.
func Demanded(d *storagev1.CSIDriver) *storagev1.CSIDriver {
	d.Spec.PreventPodSchedulingIfMissing = new(true)
	return d
}

// Capacity returns a CSIStorageCapacity: how much storage of a class the nodes with a label
// can still have.
func Capacity(name, class, left, key, value string) *storagev1.CSIStorageCapacity {
	q := resource.MustParse(left)
	c := &storagev1.CSIStorageCapacity{StorageClassName: class, Capacity: &q,
		NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}
	c.Namespace, c.Name = "kube-system", name
	return c
}

// Attachment returns the VolumeAttachment of a volume to a node.
func Attachment(driver, node, volume string) *storagev1.VolumeAttachment {
	a := &storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: node,
		Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}}}
	a.Name = fmt.Sprint(driver, "-", node, "-", volume)
	return a
}
