package cluster

import (
	"cmp"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// Workloads: what Berth reads of Services, ReplicaSets, StatefulSets,
// ReplicationControllers, DaemonSets and Jobs, which is how they select pods, of a
// DaemonSet the pod that it makes, and how many pods the others keep up (replicas.go);
// and by what the rules look them up. It must hold that
//
//   - workloads.services has each Service that selects something once, under the first of
//     the labels, by key, that it selects by;
//   - a workload of which placement rules read something new has a WorkloadSet in the
//     journal, and any other change of one a WorkloadRenewed: controllers write the status
//     of their objects often, and no rule is asked about that.

// WorkloadKind is a kind of object that selects or makes pods.
type WorkloadKind string

// The first four are those whose selectors system-default spreading reads, as
// kube-scheduler's helper.DefaultSelector does.
const (
	Service               WorkloadKind = "Service"
	ReplicaSet            WorkloadKind = "ReplicaSet"
	StatefulSet           WorkloadKind = "StatefulSet"
	ReplicationController WorkloadKind = "ReplicationController"
	// DaemonSet puts a pod of its Template on every node that takes it: scale-up
	// leaves room for it on nodes that don't exist yet.
	DaemonSet WorkloadKind = "DaemonSet"
	// Job is read for its Replicas only, by no rule.
	Job WorkloadKind = "Job"
)

// Workload is an object that selects or makes pods. It is immutable.
type Workload struct {
	Kind            WorkloadKind
	Namespace, Name string
	Selector        labels.Selector   // ReplicaSet, StatefulSet
	Set             map[string]string // Service, ReplicationController; nil selects nothing
	Template        *Pod              // DaemonSet
	// Replicas are of a kind that keeps up a number of pods: ReplicaSet, StatefulSet,
	// ReplicationController, Job. They say nothing to placement rules.
	Replicas Replicas
}

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
	case *batchv1.Job:
		w.Kind = Job
	default:
		return nil
	}
	w.Replicas = replicasOf(obj)
	meta := obj.(metav1.Object)
	w.Namespace, w.Name = meta.GetNamespace(), meta.GetName()
	return w
}

func trimService(o *v1.Service) *v1.Service {
	return &v1.Service{ObjectMeta: trimMeta(&o.ObjectMeta), Spec: v1.ServiceSpec{Selector: o.Spec.Selector}}
}

func trimReplicationController(o *v1.ReplicationController) *v1.ReplicationController {
	return &v1.ReplicationController{ObjectMeta: trimMeta(&o.ObjectMeta),
		Spec:   v1.ReplicationControllerSpec{Selector: o.Spec.Selector, Replicas: o.Spec.Replicas},
		Status: v1.ReplicationControllerStatus{Replicas: o.Status.Replicas}}
}

func trimReplicaSet(o *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: trimMeta(&o.ObjectMeta),
		Spec:   appsv1.ReplicaSetSpec{Selector: o.Spec.Selector, Replicas: o.Spec.Replicas},
		Status: appsv1.ReplicaSetStatus{Replicas: o.Status.Replicas}}
}

func trimStatefulSet(o *appsv1.StatefulSet) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: trimMeta(&o.ObjectMeta),
		Spec: appsv1.StatefulSetSpec{Selector: o.Spec.Selector, Replicas: o.Spec.Replicas},
		Status: appsv1.StatefulSetStatus{CurrentReplicas: o.Status.CurrentReplicas, UpdatedReplicas: o.Status.UpdatedReplicas,
			CurrentRevision: o.Status.CurrentRevision, UpdateRevision: o.Status.UpdateRevision}}
}

// trimJob keeps of the conditions those that say that the Job is over.
func trimJob(o *batchv1.Job) *batchv1.Job {
	out := &batchv1.Job{ObjectMeta: trimMeta(&o.ObjectMeta),
		Spec:   batchv1.JobSpec{Parallelism: o.Spec.Parallelism, Completions: o.Spec.Completions, Suspend: o.Spec.Suspend},
		Status: batchv1.JobStatus{Active: o.Status.Active, Succeeded: o.Status.Succeeded}}
	for _, c := range o.Status.Conditions {
		if endsJob(&c) {
			out.Status.Conditions = append(out.Status.Conditions, batchv1.JobCondition{Type: c.Type, Status: c.Status})
		}
	}
	return out
}

// trimDaemonSet keeps of the template what is read of a pod.
func trimDaemonSet(o *appsv1.DaemonSet) *appsv1.DaemonSet {
	pod := trimPod(&v1.Pod{ObjectMeta: o.Spec.Template.ObjectMeta, Spec: o.Spec.Template.Spec})
	return &appsv1.DaemonSet{ObjectMeta: trimMeta(&o.ObjectMeta), Spec: appsv1.DaemonSetSpec{
		Template: v1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}}}
}

// sameWorkload reports whether no placement rule could tell the two apart: they may differ in
// their Replicas. Most updates are of the status.
func sameWorkload(a, b *Workload) bool {
	if a.key() != b.key() || !maps.Equal(a.Set, b.Set) ||
		(a.Selector == nil) != (b.Selector == nil) || (a.Template == nil) != (b.Template == nil) {
		return false
	}
	return (a.Selector == nil || SelectorText(a.Selector) == SelectorText(b.Selector)) &&
		(a.Template == nil || equality.Semantic.DeepEqual(trimPod(a.Template.Object), trimPod(b.Template.Object)))
}

func (w *Workload) key() workloadKey { return workloadKey{w.Kind, w.Namespace, w.Name} }

type workloadKey struct {
	kind            WorkloadKind
	namespace, name string
}

type workloads struct {
	byKey map[workloadKey]*Workload
	// services are listed under the first label, by key, that they select by: only
	// those under a pod's own labels can select it.
	services map[serviceKey][]*Workload
}

// serviceKey is what Services are looked up by: a namespace and a label.
type serviceKey struct{ namespace, key, value string }

// firstLabel returns the first label, by key, that a Service selects by; one that
// selects nothing has none.
func firstLabel(w *Workload) (p serviceKey, ok bool) {
	for k, v := range w.Set {
		if !ok || k < p.key {
			p, ok = serviceKey{w.Namespace, k, v}, true
		}
	}
	return p, ok
}

func (w *workloads) init() {
	w.byKey = map[workloadKey]*Workload{}
	w.services = map[serviceKey][]*Workload{}
}

func (w *workloads) set(now, old *Workload) {
	named := cmp.Or(now, old)
	setOrDelete(w.byKey, named.key(), now)
	if named.Kind != Service {
		return
	}
	if old != nil {
		if p, ok := firstLabel(old); ok {
			rest := slices.DeleteFunc(slices.Clone(w.services[p]), func(x *Workload) bool { return x.Name == old.Name })
			if w.services[p] = rest; len(rest) == 0 {
				delete(w.services, p)
			}
		}
	}
	if now != nil {
		if p, ok := firstLabel(now); ok {
			w.services[p] = append(slices.Clip(w.services[p]), now)
		}
	}
}

// SetWorkload adds or replaces a workload. An update of which nothing is read leaves no
// trace.
func (s *State) SetWorkload(w *Workload) {
	old := s.work.byKey[w.key()]
	op := WorkloadSet
	if w.Kind == Job || old != nil && sameWorkload(old, w) {
		op = WorkloadRenewed
	}
	if op == WorkloadRenewed && old != nil && old.Replicas == w.Replicas {
		return
	}
	s.record(Change{Op: op, Node: NoNode, Workload: w, OldWorkload: old})
}

// RemoveWorkload removes a workload, if it is there.
func (s *State) RemoveWorkload(kind WorkloadKind, namespace, name string) {
	old := s.work.byKey[workloadKey{kind, namespace, name}]
	if old == nil {
		return
	}
	op := WorkloadSet
	if kind == Job {
		op = WorkloadRenewed
	}
	s.record(Change{Op: op, Node: NoNode, OldWorkload: old})
}

// Workload returns one workload, or nil.
func (s *State) Workload(kind WorkloadKind, namespace, name string) *Workload {
	return s.work.byKey[workloadKey{kind, namespace, name}]
}

// Selecting calls f with each Service of a namespace that selects pods with
// the labels, in no particular order. It looks at those only whose first label
// is among them.
func (s *State) Selecting(namespace string, labels map[string]string, f func(*Workload)) {
	for k, v := range labels {
		for _, w := range s.work.services[serviceKey{namespace, k, v}] {
			if selects(w.Set, labels) {
				f(w)
			}
		}
	}
}

func selects(want, have map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// Workloads returns all workloads, by kind, namespace and name.
func (s *State) Workloads() []*Workload {
	return slices.SortedFunc(maps.Values(s.work.byKey), func(a, b *Workload) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}
