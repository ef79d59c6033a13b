package cluster

import (
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// WorkloadOf returns how an object selects pods; nil when its kind doesn't, or
// not to the rules. A selector that doesn't parse selects nothing.
func WorkloadOf(obj runtime.Object) *Workload {
	w := &Workload{}
	switch o := obj.(type) {
	case *v1.Service:
		w.Kind, w.Set = Service, o.Spec.Selector
	case *v1.ReplicationController:
		w.Kind, w.Set = ReplicationController, o.Spec.Selector
	case *appsv1.ReplicaSet:
		w.Kind, w.Selector = ReplicaSet, selectorOf(o.Spec.Selector)
	case *appsv1.StatefulSet:
		w.Kind, w.Selector = StatefulSet, selectorOf(o.Spec.Selector)
	case *appsv1.DaemonSet:
		w.Kind = DaemonSet
	default:
		return nil
	}
	meta := obj.(metav1.Object)
	w.Namespace, w.Name = meta.GetNamespace(), meta.GetName()
	return w
}
