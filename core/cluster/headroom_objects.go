package cluster

// This file describes the objects that ask for headroom, and those that they refer to. No
// rule reads any of them: the lifecycle machine headroom does.

import (
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berthproject/berth/core/autoscalingapi"
)

var bufferKind = kindOf[*autoscalingapi.CapacityBuffer]{
	new: func() *autoscalingapi.CapacityBuffer { return &autoscalingapi.CapacityBuffer{} },
	reads: func(o *autoscalingapi.CapacityBuffer) *autoscalingapi.CapacityBuffer {
		return &autoscalingapi.CapacityBuffer{ObjectMeta: trimMeta(&o.ObjectMeta), Spec: o.Spec, Status: o.Status}
	},
}

var provisioningRequestKind = kindOf[*autoscalingapi.ProvisioningRequest]{
	new: func() *autoscalingapi.ProvisioningRequest { return &autoscalingapi.ProvisioningRequest{} },
	reads: func(o *autoscalingapi.ProvisioningRequest) *autoscalingapi.ProvisioningRequest {
		out := &autoscalingapi.ProvisioningRequest{ObjectMeta: trimMeta(&o.ObjectMeta), Spec: o.Spec, Status: o.Status}
		out.CreationTimestamp, out.Generation = o.CreationTimestamp, o.Generation
		out.Spec.Parameters = annotated(o.Spec.Parameters, autoscalingapi.NoRetry, autoscalingapi.ValidUntilSeconds)
		return out
	},
}

var podTemplateKind = kindOf[*v1.PodTemplate]{
	new: func() *v1.PodTemplate { return &v1.PodTemplate{} },
	reads: func(o *v1.PodTemplate) *v1.PodTemplate {
		out := &v1.PodTemplate{ObjectMeta: trimMeta(&o.ObjectMeta), Template: trimTemplate(&o.Template)}
		out.Generation = o.Generation
		return out
	},
}

var scalableKind = kindOf[*Scalable]{
	new: func() *Scalable { return &Scalable{} },
	reads: func(o *Scalable) *Scalable {
		return &Scalable{ObjectMeta: trimMeta(&o.ObjectMeta), Replicas: o.Replicas, Template: trimTemplate(&o.Template)}
	},
}

// trimTemplate keeps of a template what is read of a pod.
func trimTemplate(t *v1.PodTemplateSpec) v1.PodTemplateSpec {
	pod := trimPod(&v1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec})
	return v1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
}

// Scalable is what is read of an object that makes a number of pods. Its name is the
// object's kind and name, with a slash between them, for objects of several kinds may have
// one name.
type Scalable struct {
	metav1.ObjectMeta
	Replicas int32
	Template v1.PodTemplateSpec
}

// ScalableName returns the name of the Scalable of an object.
func ScalableName(kind, name string) string { return kind + "/" + name }

// ScalableOf returns the Scalable of an object, nil when its kind isn't one that buffers may
// refer to: Deployment, StatefulSet, ReplicaSet.
func ScalableOf(obj runtime.Object) *Scalable {
	scalable := func(kind string, meta *metav1.ObjectMeta, replicas *int32, template *v1.PodTemplateSpec) *Scalable {
		out := &Scalable{ObjectMeta: trimMeta(meta), Replicas: 1, Template: trimTemplate(template)}
		out.Name = ScalableName(kind, meta.Name)
		if replicas != nil {
			out.Replicas = *replicas
		}
		return out
	}
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return scalable("Deployment", &o.ObjectMeta, o.Spec.Replicas, &o.Spec.Template)
	case *appsv1.StatefulSet:
		return scalable("StatefulSet", &o.ObjectMeta, o.Spec.Replicas, &o.Spec.Template)
	case *appsv1.ReplicaSet:
		return scalable("ReplicaSet", &o.ObjectMeta, o.Spec.Replicas, &o.Spec.Template)
	}
	return nil
}
