package cluster

import (
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/autoscalingapi"
)

// Object is an API object that rules or the autoscaler read as it stands: a Namespace,
// PersistentVolumeClaim, PersistentVolume, StorageClass, CSINode, CSIDriver,
// CSIStorageCapacity, VolumeAttachment, DeviceClass, ResourceSlice, ResourceClaim, DeviceTaintRule,
// PodGroup or PodDisruptionBudget; a CapacityBuffer
// or ProvisioningRequest, and the PodTemplate or Scalable that one refers to.
type Object = metav1.Object

// ObjectKind tells those kinds apart. The numbers are in recordings, so a new
// kind comes last.
type ObjectKind uint8

// The kinds of Object.
const (
	NoObject ObjectKind = iota
	NamespaceKind
	ClaimKind
	VolumeKind
	StorageClassKind
	CSINodeKind
	CSIDriverKind
	StorageCapacityKind
	AttachmentKind
	BudgetKind
	BufferKind
	ProvisioningRequestKind
	PodTemplateKind
	ScalableKind
	DeviceClassKind
	ResourceSliceKind
	ResourceClaimKind
	DeviceTaintRuleKind
	PodGroupKind
)

// KindOf returns the kind of an object; NoObject when rules don't read it.
func KindOf(o Object) ObjectKind {
	switch o.(type) {
	case *v1.Namespace:
		return NamespaceKind
	case *v1.PersistentVolumeClaim:
		return ClaimKind
	case *v1.PersistentVolume:
		return VolumeKind
	case *storagev1.StorageClass:
		return StorageClassKind
	case *storagev1.CSINode:
		return CSINodeKind
	case *storagev1.CSIDriver:
		return CSIDriverKind
	case *storagev1.CSIStorageCapacity:
		return StorageCapacityKind
	case *storagev1.VolumeAttachment:
		return AttachmentKind
	case *policyv1.PodDisruptionBudget:
		return BudgetKind
	case *autoscalingapi.CapacityBuffer:
		return BufferKind
	case *autoscalingapi.ProvisioningRequest:
		return ProvisioningRequestKind
	case *v1.PodTemplate:
		return PodTemplateKind
	case *Scalable:
		return ScalableKind
	case *resourcev1.DeviceClass:
		return DeviceClassKind
	case *resourcev1.ResourceSlice:
		return ResourceSliceKind
	case *resourcev1.ResourceClaim:
		return ResourceClaimKind
	case *resourcev1.DeviceTaintRule:
		return DeviceTaintRuleKind
	case *schedulingv1beta1.PodGroup:
		return PodGroupKind
	}
	return NoObject
}

// description is what the state knows about a kind of Object.
type description interface {
	empty() Object
	trim(Object) Object
	index(*objects, Object, int)
	touches(*State, Object, func(NodeIndex))
	readEverywhere() bool
	differs(a, b Object) bool
}

// describe returns the description of a kind, nil for NoObject and for kinds
// that don't exist.
func describe(kind ObjectKind) description {
	switch kind {
	case NamespaceKind:
		return namespaceKind
	case ClaimKind:
		return claimKind
	case VolumeKind:
		return volumeKind
	case StorageClassKind:
		return storageClassKind
	case CSINodeKind:
		return csiNodeKind
	case CSIDriverKind:
		return csiDriverKind
	case StorageCapacityKind:
		return storageCapacityKind
	case AttachmentKind:
		return attachmentKind
	case BudgetKind:
		return budgetKind
	case BufferKind:
		return bufferKind
	case ProvisioningRequestKind:
		return provisioningRequestKind
	case PodTemplateKind:
		return podTemplateKind
	case ScalableKind:
		return scalableKind
	case DeviceClassKind:
		return deviceClassKind
	case ResourceSliceKind:
		return resourceSliceKind
	case ResourceClaimKind:
		return resourceClaimKind
	case DeviceTaintRuleKind:
		return deviceTaintRuleKind
	case PodGroupKind:
		return podGroupKind
	}
	return nil
}

// kindOf describes the objects of one type.
type kindOf[O Object] struct {
	new func() O
	// reads returns a copy with exactly the fields that Berth reads, as Trim
	// says.
	reads func(O) O
	// lookUp books an object into (sign is 1) or out of (-1) what it is looked up
	// by. Nil: it is looked up by its name only.
	lookUp func(b *objects, o O, sign int)
	// local calls touch with the nodes of which a local rule reads the object. Nil:
	// none does.
	local func(s *State, o O, touch func(NodeIndex))
	// everywhere says that local rules may read any of the objects on any node, in place of local.
	everywhere bool
	// differ reports that two objects differ in what reads keeps, where that is seen at a glance: to find that
	// they are alike takes a comparison of all fields. Nil: it is never seen so.
	differ func(a, b O) bool
}

func (k kindOf[O]) empty() Object { return k.new() }

func (k kindOf[O]) trim(o Object) Object { return k.reads(o.(O)) }

func (k kindOf[O]) index(b *objects, o Object, sign int) {
	if k.lookUp != nil {
		k.lookUp(b, o.(O), sign)
	}
}

func (k kindOf[O]) touches(s *State, o Object, touch func(NodeIndex)) {
	switch {
	case k.everywhere:
		s.touchAll(touch)
	case k.local != nil:
		k.local(s, o.(O), touch)
	}
}

func (k kindOf[O]) readEverywhere() bool { return k.everywhere }

func (k kindOf[O]) differs(a, b Object) bool { return k.differ != nil && k.differ(a.(O), b.(O)) }

// NewObject returns an empty object of a kind, nil for NoObject and for kinds
// that don't exist.
func NewObject(kind ObjectKind) Object {
	if d := describe(kind); d != nil {
		return d.empty()
	}
	return nil
}

// sameObject reports whether no rule could tell two objects of one name apart.
func sameObject(a, b Object) bool {
	d := describe(KindOf(a))
	return !d.differs(a, b) && sameTrimmed(d.trim(a), d.trim(b))
}
