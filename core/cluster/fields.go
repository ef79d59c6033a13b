package cluster

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What Berth reads of an API object stands in one place for each kind:
// pod_fields.go, node_fields.go, workloads.go, and one file for each kind of
// Object (claims.go, volumes.go, …). From that description follow
//
//   - Trim, by which informers keep memory small and recordings keep secrets
//     out: what Berth doesn't read, nobody finds there;
//   - whether an update changes anything for the rules (SamePod and sameNode for
//     pods and nodes, sameObject and sameWorkload for the others);
//   - for an Object, which nodes an update touches.
//
// A field that a rule begins to read is added to the description of its kind,
// and nowhere else. Until it is, the rule doesn't see it in a live cluster.
// Invariants, which fields_test.go holds:
//
//   - no rule and no lifecycle can tell an object from its trimmed copy;
//   - none can tell two objects apart that the comparison calls the same.

// Trim returns a copy of an object that has exactly the fields that Berth reads,
// with the version of the object. The copy shares what it keeps with the
// original, so neither may be changed. It panics for kinds that Berth doesn't
// read.
func Trim[O metav1.Object](o O) O { return trim(o).(O) }

func trim(o metav1.Object) metav1.Object {
	switch o := o.(type) {
	case *v1.Pod:
		return trimPod(o)
	case *v1.Node:
		return trimNode(o)
	case *v1.Service:
		return trimService(o)
	case *v1.ReplicationController:
		return trimReplicationController(o)
	case *appsv1.ReplicaSet:
		return trimReplicaSet(o)
	case *appsv1.StatefulSet:
		return trimStatefulSet(o)
	case *appsv1.DaemonSet:
		return trimDaemonSet(o)
	case *batchv1.Job:
		return trimJob(o)
	}
	return describe(KindOf(o)).trim(o)
}

// field is a part of an object that Berth reads.
type field[O, P any] struct {
	path string
	// copy takes the part over, without what isn't read of it.
	copy func(to, from *O)
	// same reports whether two parsed objects that the state holds, or is to hold,
	// agree in the part, as far as it is read of them there. Nil: it isn't.
	same func(a, b P) bool
}

// trimBy copies the fields of a description.
func trimBy[O, P any](fields []field[O, P], from *O) *O {
	to := new(O)
	for i := range fields {
		fields[i].copy(to, from)
	}
	return to
}

// sameBy compares by a description, without allocating.
func sameBy[O, P any](fields []field[O, P], a, b P) bool {
	for i := range fields {
		if same := fields[i].same; same != nil && !same(a, b) {
			return false
		}
	}
	return true
}

// trimMeta keeps what is read of every kind: the names, the version, by which
// informers and writers tell one state of an object from another, and whether
// it is being deleted.
func trimMeta(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		DeletionTimestamp: m.DeletionTimestamp}
}

// labelled is trimMeta for kinds of which rules read the labels.
func labelled(m *metav1.ObjectMeta) metav1.ObjectMeta {
	out := trimMeta(m)
	out.Labels = m.Labels
	return out
}

// annotated keeps the annotations with the given keys.
func annotated(in map[string]string, keys ...string) map[string]string {
	var out map[string]string
	for _, k := range keys {
		if v, ok := in[k]; ok {
			if out == nil {
				out = make(map[string]string, len(keys))
			}
			out[k] = v
		}
	}
	return out
}

// DelayDeletionPrefix begins the annotations by which other programs have a node's deletion
// wait for them.
const DelayDeletionPrefix = "delay-deletion.cluster-autoscaler.kubernetes.io/"

// ours reports whether Berth may read an annotation of a pod, a node or a template: Cluster
// Autoscaler's, Berth's own, what names a ProvisioningRequest, what marks the image of a
// static pod, and one of Karpenter's.
func ours(key string) bool {
	return strings.HasPrefix(key, "cluster-autoscaler.kubernetes.io/") || strings.HasPrefix(key, "capacity.cluster-autoscaler.kubernetes.io/") || strings.HasPrefix(key, "berth.dev/") || strings.HasPrefix(key, DelayDeletionPrefix) ||
		strings.HasPrefix(key, "autoscaling.x-k8s.io/") || key == v1.MirrorPodAnnotationKey || key == DoNotDisruptAnnotation
}

func ourAnnotations(in map[string]string) map[string]string {
	var out map[string]string
	for k, v := range in {
		if ours(k) {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		}
	}
	return out
}

// sameOurs reports whether two sets of annotations have the same of ours, in
// O(annotations) without allocating: most pods have none of ours.
func sameOurs(a, b map[string]string) bool {
	missing := 0
	for k, v := range a { // in any order
		if !ours(k) {
			continue
		}
		if got, ok := b[k]; !ok || got != v {
			return false
		}
		missing++
	}
	for k := range b {
		if ours(k) {
			missing--
		}
	}
	return missing == 0
}

// controller keeps the owner that controls an object; rules read no other.
func controller(in []metav1.OwnerReference) []metav1.OwnerReference {
	for i := range in {
		if r := &in[i]; r.Controller != nil && *r.Controller {
			return []metav1.OwnerReference{{APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name, UID: r.UID, Controller: r.Controller}}
		}
	}
	return nil
}

func sameController(a, b metav1.Object) bool {
	x, y := metav1.GetControllerOfNoCopy(a), metav1.GetControllerOfNoCopy(b)
	if x == nil || y == nil {
		return x == y
	}
	return x.APIVersion == y.APIVersion && x.Kind == y.Kind && x.Name == y.Name && x.UID == y.UID
}

// sameTrimmed reports whether two trimmed copies differ in their versions only.
func sameTrimmed(a, b metav1.Object) bool {
	a.SetResourceVersion("")
	b.SetResourceVersion("")
	return equality.Semantic.DeepEqual(a, b)
}
