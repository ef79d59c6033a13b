package plan

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/sim/scenario"
)

// This file makes inputs of a scenario without playing it: everything that it ever has is
// there at once.

// pendingAtOnce returns a scenario as inputs of one Step: what exists at the beginning, or
// nothing of it when empty is wanted, and all that comes later, as if it were there already.
// Controllers have created the pods that they lack.
func pendingAtOnce(r *scenario.Run, empty bool) []step.Input {
	b := &inputBuilder{run: r, empty: empty, owned: map[string]int{}}
	objects := slices.Clone(r.Objects)
	for i := range r.Arrivals {
		objects = append(objects, r.Arrivals[i].Objects...)
	}
	groups := step.GroupsSet{}
	for i := range r.Spec.NodeGroups {
		g := r.Spec.NodeGroups[i].Group()
		g.Price = r.PriceTold(&r.Spec.NodeGroups[i])
		if !empty {
			for n := range r.Spec.NodeGroups[i].Initial {
				node := r.Spec.NodeGroups[i].NewNode(fmt.Sprintf("%s-initial-%d", g.ID, n))
				node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
				b.node(node, &g)
			}
		}
		groups.Groups = append(groups.Groups, g)
	}
	for _, obj := range objects {
		b.object(obj, groups.Groups)
	}
	for _, obj := range objects {
		b.pods(obj)
	}
	return append([]step.Input{groups}, b.inputs...)
}

// inputBuilder collects inputs in their order. The pods that controllers lack come last: only then is it
// known how many of their own the input has.
type inputBuilder struct {
	run    *scenario.Run
	empty  bool
	inputs []step.Input
	owned  map[string]int // by controller, how many pods of it there are
}

// node adds a node, and counts it to its group, nil for none.
func (b *inputBuilder) node(n *v1.Node, g *nodegroup.Group) {
	id := ""
	if g != nil {
		id = g.ID
		g.Target++
	}
	b.inputs = append(b.inputs, step.NodeSet{Node: n, Group: id})
}

// object adds an object; of a controller, not yet the pods that it lacks.
func (b *inputBuilder) object(obj runtime.Object, groups []nodegroup.Group) {
	switch o := obj.(type) {
	case *v1.Node:
		if b.empty {
			return
		}
		var in *nodegroup.Group
		for i := range groups {
			if adopt := b.run.Spec.NodeGroups[i].Adopt; in == nil && len(adopt) > 0 && labels.SelectorFromSet(adopt).Matches(labels.Set(o.Labels)) {
				in = &groups[i]
			}
		}
		b.node(o, in)
	case *v1.Pod:
		if b.empty && o.Spec.NodeName != "" {
			return
		}
		if c := metav1.GetControllerOfNoCopy(o); c != nil {
			b.owned[controllerID(c.Kind, o.Namespace, c.Name)]++
		}
		b.pod(o)
	case *appsv1.DaemonSet:
		b.inputs = append(b.inputs, step.DaemonSetSet{DaemonSet: o})
	default:
		if w := cluster.WorkloadOf(obj); w != nil {
			b.inputs = append(b.inputs, step.WorkloadSet{Workload: w})
		} else if o, ok := obj.(cluster.Object); ok {
			b.inputs = append(b.inputs, step.ObjectSet{Object: o})
		}
	}
}

func controllerID(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

// pods adds the pods that a controller lacks, if the object is one.
func (b *inputBuilder) pods(obj runtime.Object) {
	switch o := obj.(type) {
	case *appsv1.ReplicaSet:
		b.create("apps/v1", "ReplicaSet", &o.ObjectMeta, &o.Spec.Template, ptr.Deref(o.Spec.Replicas, 1))
	case *appsv1.StatefulSet:
		b.create("apps/v1", "StatefulSet", &o.ObjectMeta, &o.Spec.Template, ptr.Deref(o.Spec.Replicas, 1))
	case *batchv1.Job:
		parallel := ptr.Deref(o.Spec.Parallelism, 1)
		b.create("batch/v1", "Job", &o.ObjectMeta, &o.Spec.Template, min(parallel, ptr.Deref(o.Spec.Completions, parallel)-o.Status.Succeeded))
	case *v1.ReplicationController:
		if o.Spec.Template != nil {
			b.create("v1", "ReplicationController", &o.ObjectMeta, o.Spec.Template, ptr.Deref(o.Spec.Replicas, 1))
		}
	}
}

// create adds as many pods of a controller as it lacks, as the controller would create them: with its
// owner reference, by which they are one class.
func (b *inputBuilder) create(version, kind string, meta *metav1.ObjectMeta, template *v1.PodTemplateSpec, replicas int32) {
	if len(template.Spec.Containers) == 0 {
		return // trimmed away by a dump
	}
	for n := b.owned[controllerID(kind, meta.Namespace, meta.Name)]; n < int(replicas); n++ {
		b.pod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: meta.Namespace, Name: fmt.Sprintf("%s-pending-%d", meta.Name, n), Labels: template.Labels, Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: meta.Name, UID: meta.UID, Controller: new(true)}},
		}, Spec: template.Spec})
	}
}

// pod adds a pod, with the defaults that the API server sets.
func (b *inputBuilder) pod(o *v1.Pod) {
	o = o.DeepCopy()
	if o.UID == "" {
		o.UID = types.UID(o.Namespace + "/" + o.Name)
	}
	if o.Spec.SchedulerName == "" {
		o.Spec.SchedulerName = v1.DefaultSchedulerName
	}
	b.inputs = append(b.inputs, step.PodSet{Pod: o})
}
