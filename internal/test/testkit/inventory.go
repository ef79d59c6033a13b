package testkit

import (
	"fmt"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
)

// This file draws whole clusters as lists of API objects, for properties that compare what
// Berth makes of the same objects in two ways.

// Inventory is a cluster as the API has it: objects of every kind that Berth
// reads.
type Inventory struct {
	Nodes     []*v1.Node
	Pods      []*v1.Pod // with spec.nodeName
	Objects   []cluster.Object
	Workloads []metav1.Object // Services, ReplicaSets, …, DaemonSets
}

// RandomInventory draws a cluster with nodes n0, n1, … Most of its objects are changed by
// MutateAnywhere.
func RandomInventory(t *rapid.T, nodes int) *Inventory {
	inv := &Inventory{}
	for _, name := range Names("n", nodes) {
		inv.Nodes = append(inv.Nodes, RandomNode(t, name))
	}
	for i := range rapid.IntRange(0, 8).Draw(t, "pods") {
		p := RandomPlaced(t, fmt.Sprint("placed", i), pick(t, inv.Nodes, "on").Name)
		if maybe(t, 30, "stores") {
			AddVolumes(t, p)
		}
		inv.Pods = append(inv.Pods, p)
	}
	inv.Objects = RandomStorage(t)
	for range 2 {
		b, _ := RandomBudget(t)
		inv.Objects = append(inv.Objects, RandomNamespace(t), b)
	}
	if c, gone := RandomDeviceClass(t); !gone {
		inv.Objects = append(inv.Objects, c)
	}
	for range 3 {
		w := randomWorkloadObject(t)
		if !slices.ContainsFunc(inv.Workloads, func(o metav1.Object) bool { // an API has one object of a kind and name
			return reflect.TypeOf(o) == reflect.TypeOf(w) && o.GetNamespace() == w.GetNamespace() && o.GetName() == w.GetName()
		}) {
			inv.Workloads = append(inv.Workloads, w)
		}
	}
	inv.Each(func(o metav1.Object) {
		for range Uniform(t, 3, "mutations") {
			MutateAnywhere(t, o)
		}
	})
	return inv
}

// Each calls f with every object.
func (inv *Inventory) Each(f func(metav1.Object)) {
	for _, o := range inv.Nodes {
		f(o)
	}
	for _, o := range inv.Pods {
		f(o)
	}
	for _, o := range inv.Objects {
		f(o)
	}
	for _, o := range inv.Workloads {
		f(o)
	}
}

// Map returns the cluster with each object replaced by what f returns, in the same order.
func (inv *Inventory) Map(f func(metav1.Object) metav1.Object) *Inventory {
	out := &Inventory{}
	for _, o := range inv.Nodes {
		out.Nodes = append(out.Nodes, f(o).(*v1.Node))
	}
	for _, o := range inv.Pods {
		out.Pods = append(out.Pods, f(o).(*v1.Pod))
	}
	for _, o := range inv.Objects {
		out.Objects = append(out.Objects, f(o))
	}
	for _, o := range inv.Workloads {
		out.Workloads = append(out.Workloads, f(o))
	}
	return out
}

// State returns a state that holds the cluster, including pods on nodes that aren't there.
func (inv *Inventory) State(schema *cluster.Schema) *cluster.State {
	s := cluster.New(schema)
	inv.Each(func(o metav1.Object) { Set(s, o) })
	return s
}

// Set sets an object in a state, as the core does when an informer delivers the object.
func Set(s *cluster.State, o metav1.Object) {
	switch o := o.(type) {
	case *v1.Node:
		s.SetNode(s.Schema.ParseNode(o, ""))
	case *v1.Pod:
		s.Place(s.Schema.ParsePod(o), o.Spec.NodeName)
	case *appsv1.DaemonSet:
		template := &v1.Pod{ObjectMeta: *o.Spec.Template.ObjectMeta.DeepCopy(), Spec: *o.Spec.Template.Spec.DeepCopy()}
		template.Namespace, template.Name = o.Namespace, o.Name
		s.SetWorkload(&cluster.Workload{Kind: cluster.DaemonSet, Namespace: o.Namespace, Name: o.Name, Template: s.Schema.ParsePod(template)})
	default:
		if cluster.KindOf(o) != cluster.NoObject {
			s.SetObject(o)
			return
		}
		s.SetWorkload(cluster.WorkloadOf(o.(runtime.Object)))
	}
}

// randomWorkloadObject draws an object that selects or creates pods.
func randomWorkloadObject(t *rapid.T) metav1.Object {
	app := pick(t, apps, "app")
	meta := metav1.ObjectMeta{Namespace: pick(t, spaces, "ns"), Name: app}
	set := map[string]string{"app": app}
	selector := &metav1.LabelSelector{MatchLabels: set}
	wanted, existing := int32(Uniform(t, 3, "wanted")), int32(Uniform(t, 3, "existing"))
	switch Uniform(t, 6, "workload") {
	case 0:
		return &v1.Service{ObjectMeta: meta, Spec: v1.ServiceSpec{Selector: set}}
	case 1:
		return &v1.ReplicationController{ObjectMeta: meta, Spec: v1.ReplicationControllerSpec{Selector: set, Replicas: &wanted}, Status: v1.ReplicationControllerStatus{Replicas: existing}}
	case 2:
		return &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector, Replicas: &wanted}, Status: appsv1.ReplicaSetStatus{Replicas: existing}}
	case 3:
		return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector, Replicas: &wanted}, Status: appsv1.StatefulSetStatus{CurrentReplicas: existing}}
	case 4:
		return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Parallelism: &wanted}, Status: batchv1.JobStatus{Active: existing}}
	}
	p := RandomPod(t, "template")
	return &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector,
		Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels, Annotations: p.Annotations}, Spec: p.Spec}}}
}
