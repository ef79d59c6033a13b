package replay

import (
	"encoding/json"
	"fmt"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
)

// object is a cluster.Object under its kind.
type object struct {
	Kind   cluster.ObjectKind `json:"kind"`
	Object json.RawMessage    `json:"object"`
}

// redactObject writes what rules read of an object: no parameters of drivers,
// which may name secrets.
func redactObject(o cluster.Object) (object, error) {
	var short any
	switch o := o.(type) {
	case *v1.Namespace:
		short = &v1.Namespace{ObjectMeta: redactMeta(&o.ObjectMeta)}
	case *v1.PersistentVolumeClaim:
		x := *o
		x.ObjectMeta = redactMeta(&o.ObjectMeta)
		x.Annotations = o.Annotations
		short = &x
	case *v1.PersistentVolume:
		x := *o
		x.ObjectMeta = redactMeta(&o.ObjectMeta)
		x.Annotations = o.Annotations
		if csi := o.Spec.CSI; csi != nil {
			x.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: csi.Driver, VolumeHandle: csi.VolumeHandle}
		}
		short = &x
	case *storagev1.StorageClass:
		x := *o
		x.ObjectMeta, x.Parameters = redactMeta(&o.ObjectMeta), nil
		short = &x
	case *storagev1.CSINode:
		x := *o
		x.ObjectMeta = redactMeta(&o.ObjectMeta)
		x.Annotations = o.Annotations
		short = &x
	case *storagev1.CSIDriver:
		short = &storagev1.CSIDriver{ObjectMeta: redactMeta(&o.ObjectMeta), Spec: storagev1.CSIDriverSpec{StorageCapacity: o.Spec.StorageCapacity}}
	case *storagev1.CSIStorageCapacity:
		x := *o
		x.ObjectMeta = redactMeta(&o.ObjectMeta)
		short = &x
	case *storagev1.VolumeAttachment:
		short = &storagev1.VolumeAttachment{ObjectMeta: redactMeta(&o.ObjectMeta), Spec: o.Spec}
	case *policyv1.PodDisruptionBudget:
		short = &policyv1.PodDisruptionBudget{ObjectMeta: redactMeta(&o.ObjectMeta), Spec: o.Spec,
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: o.Status.DisruptionsAllowed, DisruptedPods: o.Status.DisruptedPods}}
	default:
		return object{}, fmt.Errorf("an object of type %T can't be recorded", o)
	}
	raw, err := json.Marshal(short)
	return object{cluster.KindOf(o), raw}, err
}

func redactMeta(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		Labels: m.Labels, OwnerReferences: m.OwnerReferences, DeletionTimestamp: m.DeletionTimestamp}
}

func readObject(in input) (step.Input, error) {
	o, err := read[object](in)
	if err != nil {
		return nil, err
	}
	into := cluster.NewObject(o.Kind)
	if into == nil {
		return nil, fmt.Errorf("an object of kind %d is unknown; was it recorded by a newer Berth?", o.Kind)
	}
	if err := json.Unmarshal(o.Object, into); err != nil {
		return nil, err
	}
	return step.ObjectSet{Object: into}, nil
}
