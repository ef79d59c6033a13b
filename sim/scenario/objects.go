package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/core/door"
)

// This file gathers the objects of a run: inline, from manifests and dumps, and
// from what expand.go makes. What must hold: no two objects that exist at the
// beginning have the same kind, namespace and name, and each object has a UID
// that depends only on the input and its order.

// Annotations of pods in manifests.
const (
	// ArriveAfter is how long after the beginning the pod comes.
	ArriveAfter = "berth.dev/arrive-after"
	// RunFor is how long it runs: a duration, or two with ".." between them for
	// one that is drawn for each pod.
	RunFor = "berth.dev/run-for"
	// ResizeTo is the Resize of a pod as JSON.
	ResizeTo = "berth.dev/resize-to"
)

// kinds has an empty object of each kind that the virtual world knows.
var kinds = []runtime.Object{
	&v1.Node{}, &v1.Pod{}, &v1.Service{}, &v1.ReplicationController{}, &appsv1.ReplicaSet{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{},
	&batchv1.Job{}, &policyv1.PodDisruptionBudget{}, &v1.Namespace{}, &v1.PersistentVolumeClaim{}, &v1.PersistentVolume{},
	&storagev1.StorageClass{}, &storagev1.CSINode{}, &storagev1.CSIDriver{}, &storagev1.CSIStorageCapacity{}, &storagev1.VolumeAttachment{},
	&resourcev1.DeviceClass{}, &resourcev1.ResourceSlice{}, &resourcev1.ResourceClaim{}, &resourcev1.ResourceClaimTemplate{}, &resourcev1.DeviceTaintRule{},
	&schedulingv1beta1.PodGroup{}, &v1.PodTemplate{}, &autoscalingapi.CapacityBuffer{}, &autoscalingapi.ProvisioningRequest{},
}

// kindOf returns the kind of an object by its Go type, since objects in memory have no kind.
func kindOf(obj runtime.Object) string { return reflect.TypeOf(obj).Elem().Name() }

// emptyOf returns a new object of a kind, nil for one that the world doesn't know.
func emptyOf(kind string) runtime.Object {
	for _, obj := range kinds {
		if kindOf(obj) == kind {
			return obj.DeepCopyObject()
		}
	}
	return nil
}

// objects gathers what a run begins with and what comes.
type objects struct {
	run     *Run
	unknown map[string]int  // how many objects were left out, by kind
	serial  int             // of the last UID that was made up
	defined map[string]bool // kind/namespace/name
}

// inline adds an object of spec.objects. Fields that its kind doesn't have are errors.
func (o *objects) inline(raw map[string]any) error {
	text, err := json.Marshal(raw)
	if err != nil {
		return err
	}
	kind := fmt.Sprint(raw["kind"])
	obj := emptyOf(kind)
	if obj == nil {
		var known []string
		for _, k := range kinds {
			known = append(known, kindOf(k))
		}
		return fmt.Errorf("kind is %q; the kinds are %s", kind, strings.Join(known, ", "))
	}
	strict, err := kjson.UnmarshalStrict(door.Readable(text, obj), obj)
	if err != nil {
		return err
	}
	if len(strict) > 0 {
		return errors.Join(strict...)
	}
	door.Object(obj)
	return o.put(obj)
}

// file adds the objects of a manifest or dump, or of a trace's folder.
func (o *objects) file(path string) error {
	if isTrace(path) {
		return o.trace(&Trace{}, path)
	}
	return readManifest(path, func(raw []byte, _ int) error {
		var head struct {
			typed
			Metadata struct{ Namespace, Name string }
		}
		if err := json.Unmarshal(raw, &head); err != nil {
			return fmt.Errorf("this is not a Kubernetes object: %w", err)
		}
		if head.Kind == "" {
			return errors.New("kind is missing; expected a Kubernetes object")
		}
		if head.ours() {
			return head.standsAlone()
		}
		obj := emptyOf(head.Kind)
		if obj == nil {
			o.unknown[head.Kind]++
			return nil
		}
		if err := door.Read(raw, obj); err != nil {
			return fmt.Errorf("%s %s/%s: %w", head.Kind, head.Metadata.Namespace, head.Metadata.Name, err)
		}
		return o.put(obj)
	})
}

// namespaced reports whether objects of this kind are in a namespace.
func namespaced(obj runtime.Object) bool {
	switch obj.(type) {
	case *v1.Node, *v1.Namespace, *v1.PersistentVolume, *storagev1.StorageClass, *storagev1.CSINode, *storagev1.CSIDriver, *storagev1.VolumeAttachment,
		*resourcev1.DeviceClass, *resourcev1.ResourceSlice, *resourcev1.DeviceTaintRule:
		return false
	}
	return true
}

// put adds one object of a file, at the beginning or when its annotation says. A
// pod that has ended takes up nothing and is passed over.
func (o *objects) put(obj runtime.Object) error {
	meta := obj.(metav1.Object)
	if meta.GetName() == "" {
		return errors.New("metadata.name is required")
	}
	if namespaced(obj) && meta.GetNamespace() == "" {
		meta.SetNamespace(metav1.NamespaceDefault)
	}
	pod, ok := obj.(*v1.Pod)
	if !ok {
		if err := checkNumbers(obj); err != nil {
			return fmt.Errorf("%s %s/%s: %w", kindOf(obj), meta.GetNamespace(), meta.GetName(), err)
		}
		return o.add(obj)
	}
	if pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
		return nil
	}
	if _, err := ParseRunFor(pod.Annotations[RunFor]); err != nil {
		return fmt.Errorf("pod %s/%s: annotation %s %w", pod.Namespace, pod.Name, RunFor, err)
	}
	if _, err := ParseResize(pod.Annotations[ResizeTo]); err != nil {
		return fmt.Errorf("pod %s/%s: annotation %s %w", pod.Namespace, pod.Name, ResizeTo, err)
	}
	after := pod.Annotations[ArriveAfter]
	if after == "" {
		return o.add(obj)
	}
	d, err := time.ParseDuration(after)
	if err != nil || d < 0 {
		return fmt.Errorf("pod %s/%s: annotation %s is %q; it must be a duration such as 90s, not negative", pod.Namespace, pod.Name, ArriveAfter, after)
	}
	o.arrive(d, 0, obj)
	return nil
}

// checkNumbers refuses a controller of a number of pods that no API server lets in, or that a
// world can't hold.
func checkNumbers(obj runtime.Object) error {
	numbers := map[string]*int32{}
	switch x := obj.(type) {
	case *v1.ReplicationController:
		numbers["replicas"] = x.Spec.Replicas
	case *appsv1.ReplicaSet:
		numbers["replicas"] = x.Spec.Replicas
	case *appsv1.StatefulSet:
		numbers["replicas"] = x.Spec.Replicas
	case *batchv1.Job:
		numbers["completions"], numbers["parallelism"] = x.Spec.Completions, x.Spec.Parallelism
	}
	for _, field := range slices.Sorted(maps.Keys(numbers)) {
		if n := numbers[field]; n != nil && (*n < 0 || *n > maxCount) {
			return fmt.Errorf("spec.%s is %d; it must be from 0 to %d", field, *n, maxCount)
		}
	}
	return nil
}

// add adds an object that exists at the beginning.
func (o *objects) add(obj runtime.Object) error {
	if err := o.once(obj); err != nil {
		return err
	}
	o.identify(obj)
	o.run.Objects = append(o.run.Objects, obj)
	return nil
}

// once refuses a second object of the same name.
func (o *objects) once(obj runtime.Object) error {
	meta := obj.(metav1.Object)
	key := fmt.Sprintf("%s/%s/%s", kindOf(obj), meta.GetNamespace(), meta.GetName())
	if o.defined[key] {
		return fmt.Errorf("%s %s/%s is given twice; names must be unique", kindOf(obj), meta.GetNamespace(), meta.GetName())
	}
	o.defined[key] = true
	return nil
}

// identify gives an object a UID if it has none.
func (o *objects) identify(obj runtime.Object) {
	meta := obj.(metav1.Object)
	if meta.GetUID() == "" {
		o.serial++
		meta.SetUID(types.UID(fmt.Sprintf("%s/%s#%d", meta.GetNamespace(), meta.GetName(), o.serial)))
	}
}

// arrive adds objects that come at a time together, and are deleted deleteAfter
// later (never when 0).
func (o *objects) arrive(at, deleteAfter time.Duration, objs ...runtime.Object) {
	for _, obj := range objs {
		o.identify(obj)
	}
	o.run.Arrivals = append(o.run.Arrivals, Arrival{At: at, Objects: objs, DeleteAfter: deleteAfter})
}
