package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berthproject/berth/sim/checker"
)

// This file looks over all objects of a run once they are together, and notes
// what a person should know before the run: what was left out, and what can't
// happen.

// finish does what needs all objects: it leaves out pods on absent nodes, writes
// the notes, and orders the arrivals by time.
func (o *objects) finish() {
	idle := o.idle()
	o.leaveOutLostPods()
	for _, kind := range slices.Sorted(maps.Keys(o.unknown)) {
		o.note("%d object(s) of kind %s are ignored: the simulation does not support this kind", o.unknown[kind], kind)
	}
	if idle {
		o.note("there is no workload: no pods exist or arrive")
	}
	o.noteUnusableGroups()
	slices.SortStableFunc(o.run.Arrivals, func(a, b Arrival) int { return cmp.Compare(a.At, b.At) })
}

// note adds a note for people. Notes are no errors: the run is as the input says.
func (o *objects) note(format string, args ...any) {
	o.run.Notes = append(o.run.Notes, fmt.Sprintf(format, args...))
}

// idle reports whether the input has no pods, nothing that would make any, and
// nothing that comes later.
func (o *objects) idle() bool {
	return len(o.run.Arrivals) == 0 && !slices.ContainsFunc(o.run.Objects, func(obj runtime.Object) bool {
		switch obj.(type) {
		case *v1.Pod, *appsv1.ReplicaSet, *appsv1.StatefulSet, *appsv1.DaemonSet, *batchv1.Job:
			return true
		}
		return false
	})
}

// leaveOutLostPods leaves out the pods that are bound to a node which the input
// doesn't have.
func (o *objects) leaveOutLostPods() {
	nodes := map[string]bool{}
	for _, obj := range o.run.Objects {
		if node, ok := obj.(*v1.Node); ok {
			nodes[node.Name] = true
		}
	}
	lost, example := 0, ""
	o.run.Objects = slices.DeleteFunc(o.run.Objects, func(obj runtime.Object) bool {
		pod, ok := obj.(*v1.Pod)
		if !ok || pod.Spec.NodeName == "" || nodes[pod.Spec.NodeName] {
			return false
		}
		lost++
		example = cmp.Or(example, fmt.Sprintf("%s/%s on %s", pod.Namespace, pod.Name, pod.Spec.NodeName))
		return true
	})
	if lost > 0 {
		o.note("%d pod(s) on nodes that are not in the input are ignored, such as %s", lost, example)
	}
}

// noteUnusableGroups notes the node groups of which no pod would fit an empty
// node.
func (o *objects) noteUnusableGroups() {
	specs := o.podSpecs()
	if len(specs) == 0 {
		return
	}
	for i := range o.run.Spec.NodeGroups {
		g := &o.run.Spec.NodeGroups[i]
		node := g.NewNode(g.Name)
		if !slices.ContainsFunc(specs, func(spec *v1.PodSpec) bool {
			return checker.Fits(&v1.Pod{Spec: *o.withoutBacked(spec, node)}, node, []*v1.Node{node}, nil)
		}) {
			o.note("node group %s: no pod of the input fits its template, so it will not be scaled up", g.Name)
		}
	}
}

// withoutBacked returns a pod's spec without the extended resources that a node lacks and devices may provide.
func (o *objects) withoutBacked(spec *v1.PodSpec, node *v1.Node) *v1.PodSpec {
	backed := func(name v1.ResourceName) bool {
		_, offered := node.Status.Allocatable[name]
		return !offered && slices.ContainsFunc(o.run.Objects, func(obj runtime.Object) bool {
			c, ok := obj.(*resourcev1.DeviceClass)
			return ok && (string(name) == resourcev1.ResourceDeviceClassPrefix+c.Name || c.Spec.ExtendedResourceName != nil && *c.Spec.ExtendedResourceName == string(name))
		})
	}
	for i := range spec.Containers {
		for name := range spec.Containers[i].Resources.Requests {
			if strings.Contains(string(name), "/") && backed(name) {
				spec = spec.DeepCopy()
				delete(spec.Containers[i].Resources.Requests, name)
			}
		}
	}
	return spec
}

// podSpecs returns the specs of all pods that the autoscaler may buy nodes for,
// one of each template.
func (o *objects) podSpecs() []*v1.PodSpec {
	var specs []*v1.PodSpec
	seen := map[*v1.Container]bool{} // pods of one template share its containers
	look := func(obj runtime.Object) {
		var spec *v1.PodSpec
		switch x := obj.(type) {
		case *v1.Pod:
			spec = &x.Spec
		case *appsv1.ReplicaSet:
			spec = &x.Spec.Template.Spec
		case *appsv1.StatefulSet:
			spec = &x.Spec.Template.Spec
		case *batchv1.Job:
			spec = &x.Spec.Template.Spec
		}
		if spec != nil && len(spec.Containers) > 0 && !seen[&spec.Containers[0]] {
			seen[&spec.Containers[0]] = true
			specs = append(specs, spec)
		}
	}
	for _, obj := range o.run.Objects {
		look(obj)
	}
	for i := range o.run.Arrivals {
		for _, obj := range o.run.Arrivals[i].Objects {
			look(obj)
		}
	}
	return specs
}
