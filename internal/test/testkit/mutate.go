package testkit

import (
	"reflect"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
)

// This file changes objects anywhere, by walking their fields with reflection: it reaches
// fields that no builder and no random object sets. An object keeps what the API server
// guarantees as far as rules rely on it (oneSourceEach).

// Mutate changes one randomly chosen part of a pod's labels, owner, namespace or spec.
func Mutate(t *rapid.T, p *v1.Pod) {
	defer oneSourceEach(p)
	if k := rapid.IntRange(0, 9).Draw(t, "root"); k < 2 {
		mutate(t, reflect.ValueOf(&p.Labels).Elem(), 0)
		return
	} else if k == 2 {
		mutate(t, reflect.ValueOf(&p.OwnerReferences).Elem(), 0)
		return
	} else if k == 3 {
		p.Namespace = pick(t, spaces, "ns")
		return
	}
	mutate(t, reflect.ValueOf(&p.Spec).Elem(), 0)
}

// MutateAnywhere changes one randomly chosen part of an API object, except what identifies
// the object and its version.
func MutateAnywhere(t *rapid.T, o metav1.Object) {
	v := reflect.ValueOf(o).Elem()
	var parts []reflect.Value
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; name != "TypeMeta" && name != "ObjectMeta" {
			parts = append(parts, v.Field(i))
		}
	}
	meta := v.FieldByName("ObjectMeta")
	for i := range meta.NumField() {
		switch meta.Type().Field(i).Name {
		case "Name", "GenerateName", "Namespace", "UID", "ResourceVersion", "SelfLink", "ManagedFields":
		default:
			parts = append(parts, meta.Field(i))
		}
	}
	mutate(t, pick(t, parts, "part of the object"), 0)
	oneSourceEach(o)
}

// oneSourceEach leaves each volume one source, as the API server requires: of several, the
// CSI translation library reads any one.
func oneSourceEach(o metav1.Object) {
	first := func(source reflect.Value) {
		found := false
		for i := range source.NumField() {
			if f := source.Field(i); !f.IsNil() {
				if found {
					f.SetZero()
				}
				found = true
			}
		}
	}
	switch o := o.(type) {
	case *v1.PersistentVolume:
		first(reflect.ValueOf(&o.Spec.PersistentVolumeSource).Elem())
	case *v1.Pod:
		for i := range o.Spec.Volumes {
			first(reflect.ValueOf(&o.Spec.Volumes[i].VolumeSource).Elem())
		}
	}
}

// words are texts that mean something to some rule.
var words = []string{"", "a", "b", "app", "web", "db", "disk", "ssd", "gpu", "spot", "n0", "n1", "In", "NotIn", "Exists", "Equal",
	"NoSchedule", "PreferNoSchedule", v1.LabelHostname, v1.LabelTopologyZone, "ScheduleAnyway", "TCP", "default", "other", "metadata.name", "ReplicaSet", "apps/v1",
	"cpu", "memory", "storage", "true", "True", "yes", "fast", "static", "pv0", "c0", "csi.example", "kubernetes.io/aws-ebs", "DaemonSet",
	cluster.DaemonPodAnnotation, cluster.SafeToEvictAnnotation, cluster.DoNotDisruptAnnotation, cluster.SystemNamespace, v1.MirrorPodAnnotationKey, v1.MigratedPluginsAnnotationKey, v1.BetaStorageClassAnnotation,
	cluster.AnnBindCompleted, cluster.AnnSelectedNode, "DisruptionTarget", "PreemptionByScheduler", "PodResizePending", "Infeasible", "Ready", "Failed"}

// mutate changes a value. Below depth 12 it follows no pointers: API objects nest no deeper
// where it matters.
func mutate(t *rapid.T, v reflect.Value, depth int) {
	if mutateOpaque(t, v) {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(pick(t, words, "s"))
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(rapid.IntRange(0, 100).Draw(t, "i")))
	case reflect.Pointer:
		mutatePointer(t, v, depth)
	case reflect.Struct:
		if v.NumField() > 0 && v.Field(0).CanSet() {
			mutate(t, v.Field(rapid.IntRange(0, v.NumField()-1).Draw(t, "field")), depth+1)
		}
	case reflect.Slice:
		mutateSlice(t, v, depth)
	case reflect.Map:
		mutateMap(t, v, depth)
	}
}

// mutateOpaque changes a value of a type whose fields can't have just any values, and
// reports whether it is one.
func mutateOpaque(t *rapid.T, v reflect.Value) bool {
	switch x := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*x = resource.MustParse(pick(t, []string{"0", "1", "200m", "1Gi", "2Gi"}, "q"))
	case *intstr.IntOrString:
		*x = intstr.FromInt32(int32(Uniform(t, 10, "number")))
	case *metav1.Time:
		*x = metav1.Unix(int64(Uniform(t, 1000, "time")), 0)
	case *metav1.FieldsV1:
		x.SetRawString("{}")
	case *runtime.RawExtension:
		*x = runtime.RawExtension{Raw: []byte("{}")}
	default:
		return false
	}
	return true
}

// mutatePointer sets a pointer to nil, or to a changed copy: others may share the value.
func mutatePointer(t *rapid.T, v reflect.Value, depth int) {
	if depth > 12 || !v.IsNil() && maybe(t, 10, "nil") {
		v.SetZero()
		return
	}
	fresh := reflect.New(v.Type().Elem())
	if !v.IsNil() {
		fresh.Elem().Set(v.Elem())
	}
	v.Set(fresh)
	mutate(t, v.Elem(), depth+1)
}

// mutateSlice replaces a slice by a copy with an element changed, and maybe one more or
// one less. A slice or map without elements becomes nil: the API server leaves such fields
// out, and rules tell an empty list from one that isn't there.
func mutateSlice(t *rapid.T, v reflect.Value, depth int) {
	fresh := reflect.MakeSlice(v.Type(), v.Len(), v.Len()+1)
	reflect.Copy(fresh, v)
	if v.Len() == 0 || maybe(t, 30, "append") {
		fresh = reflect.Append(fresh, reflect.New(v.Type().Elem()).Elem())
	} else if maybe(t, 20, "drop") {
		fresh = fresh.Slice(0, v.Len()-1)
	}
	if fresh.Len() == 0 {
		v.SetZero()
		return
	}
	v.Set(fresh)
	mutate(t, v.Index(rapid.IntRange(0, v.Len()-1).Draw(t, "at")), depth+1)
}

// mutateMap replaces a map by a copy with a random key set or deleted.
func mutateMap(t *rapid.T, v reflect.Value, depth int) {
	fresh := reflect.MakeMap(v.Type())
	for _, k := range v.MapKeys() {
		fresh.SetMapIndex(k, v.MapIndex(k))
	}
	k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
	mutate(t, k, depth+1)
	mutate(t, e, depth+1)
	if maybe(t, 25, "delete") {
		e = reflect.Value{}
	}
	fresh.SetMapIndex(k, e)
	if fresh.Len() == 0 {
		v.SetZero()
		return
	}
	v.Set(fresh)
}
