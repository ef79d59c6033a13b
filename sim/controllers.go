package sim

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corehelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

type controllerKey struct{ kind, namespace, name string }

// controller is a controller of pods: it makes those that are missing.
type controller struct {
	key         controllerKey
	meta        metav1.ObjectMeta
	version     string
	template    v1.PodTemplateSpec
	replicas    int
	parallel    int                        // Job: pods at a time
	inOrder     bool                       // StatefulSet: one after the other
	claims      []v1.PersistentVolumeClaim // StatefulSet: templates
	pods        []*pod
	succeeded   int
	missing     []*node // DaemonSet: nodes that may lack a pod
	serial      int
	reconciling bool
	removed     bool
}

// addController starts a controller for the kinds that have pods.
func (w *World) addController(obj runtime.Object) {
	o := &controller{}
	switch x := obj.(type) {
	case *appsv1.ReplicaSet:
		*o = controller{key: controllerKey{"ReplicaSet", x.Namespace, x.Name}, meta: x.ObjectMeta, version: "apps/v1", template: x.Spec.Template, replicas: int(ptr.Deref(x.Spec.Replicas, 1))}
	case *v1.ReplicationController:
		*o = controller{key: controllerKey{"ReplicationController", x.Namespace, x.Name}, meta: x.ObjectMeta, version: "v1", replicas: int(ptr.Deref(x.Spec.Replicas, 1))}
		if x.Spec.Template != nil {
			o.template = *x.Spec.Template
		}
	case *appsv1.StatefulSet:
		*o = controller{key: controllerKey{"StatefulSet", x.Namespace, x.Name}, meta: x.ObjectMeta, version: "apps/v1", template: x.Spec.Template, replicas: int(ptr.Deref(x.Spec.Replicas, 1)),
			inOrder: x.Spec.PodManagementPolicy != appsv1.ParallelPodManagement, claims: x.Spec.VolumeClaimTemplates}
	case *appsv1.DaemonSet:
		*o = controller{key: controllerKey{"DaemonSet", x.Namespace, x.Name}, meta: x.ObjectMeta, version: "apps/v1", template: x.Spec.Template}
	case *batchv1.Job:
		parallel := ptr.Deref(x.Spec.Parallelism, 1)
		*o = controller{key: controllerKey{"Job", x.Namespace, x.Name}, meta: x.ObjectMeta, version: "batch/v1", template: x.Spec.Template,
			replicas: int(ptr.Deref(x.Spec.Completions, parallel)), parallel: int(parallel), succeeded: int(x.Status.Succeeded)}
	default:
		return
	}
	if len(o.template.Spec.Containers) == 0 {
		return // trimmed in the dump: it can't make pods
	}
	w.controllers[o.key] = o
	if o.key.kind == "DaemonSet" {
		w.daemons = append(w.daemons, o)
		o.missing = w.sortedNodes()
	}
	w.reconcile(o)
}

// controllerOf finds the controller that a pod names.
func (w *World) controllerOf(p *v1.Pod) *controller {
	if r := metav1.GetControllerOfNoCopy(p); r != nil {
		return w.controllers[controllerKey{r.Kind, p.Namespace, r.Name}]
	}
	return nil
}

// removeController deletes a controller with its pods.
func (w *World) removeController(obj runtime.Object) {
	meta := obj.(metav1.Object)
	kind := strings.TrimPrefix(fmt.Sprintf("%T", obj), "*v1.")
	o := w.controllers[controllerKey{kind, meta.GetNamespace(), meta.GetName()}]
	if o == nil {
		return
	}
	o.removed = true
	delete(w.controllers, o.key)
	w.daemons = slices.DeleteFunc(w.daemons, func(x *controller) bool { return x == o })
	for _, p := range slices.Clone(o.pods) {
		w.deletePod(p)
	}
}

// drop forgets a pod that is gone.
func (o *controller) drop(p *pod) {
	o.pods = slices.DeleteFunc(o.pods, func(q *pod) bool { return q == p })
	o.miss(p)
}

func (o *controller) miss(p *pod) {
	if o.key.kind == "DaemonSet" && p.daemonNode != nil && !p.daemonNode.dead {
		o.missing = append(o.missing, p.daemonNode)
	}
}

// ended takes note of a pod that is over.
func (o *controller) ended(p *pod, succeeded bool) {
	o.pods = slices.DeleteFunc(o.pods, func(q *pod) bool { return q == p })
	if succeeded {
		o.succeeded++
	}
	o.miss(p)
}

// reconcile has the controller look, a moment later.
func (w *World) reconcile(o *controller) {
	if o == nil || o.reconciling || o.removed {
		return
	}
	o.reconciling = true
	o.serial++
	w.after(w.between(nil, 50, 300, "reconcile", o.key.kind, o.key.namespace, o.key.name, fmt.Sprint(o.serial)), phaseWorld, func() {
		o.reconciling = false
		if !o.removed {
			w.createMissing(o)
		}
	})
}

// createMissing makes the pods that are missing, as the controller of the kind does.
func (w *World) createMissing(o *controller) {
	switch o.key.kind {
	case "DaemonSet":
		w.createMissingDaemons(o)
	case "StatefulSet":
		w.createMissingOrdered(o)
	default:
		// A terminating pod counts no more for these; its replacement comes at once.
		want := o.replicas
		if o.key.kind == "Job" {
			want = min(o.parallel, o.replicas-o.succeeded)
		}
		active := 0
		for _, p := range o.pods {
			if p.active() {
				active++
			}
		}
		for ; active < want; active++ {
			o.serial++
			w.addPod(o.pod(fmt.Sprintf("%s-%05x", o.key.name, o.serial)), o)
		}
	}
}

// createMissingOrdered makes a StatefulSet's pods: each has one name for all its
// lives, so a new one waits until the old one is gone, and by default until
// all before it are ready.
func (w *World) createMissingOrdered(o *controller) {
	at := make([]*pod, o.replicas)
	for _, p := range o.pods {
		if p.ordinal < 0 { // of a dump
			if i := strings.LastIndexByte(p.obj.Name, '-'); i >= 0 {
				fmt.Sscan(p.obj.Name[i+1:], &p.ordinal)
			}
		}
		if p.ordinal >= 0 && p.ordinal < o.replicas {
			at[p.ordinal] = p
		}
	}
	for i, p := range at {
		if p == nil {
			if q := w.addPod(o.pod(fmt.Sprintf("%s-%d", o.key.name, i)), o); q != nil {
				q.ordinal = i
			}
		}
		if o.inOrder && (p == nil || !p.ready || !p.active()) {
			return
		}
	}
}

func (w *World) createMissingDaemons(o *controller) {
	nodes := o.missing
	o.missing = nil
	for _, n := range nodes {
		if n.dead || !o.runsOn(n) || slices.ContainsFunc(o.pods, func(p *pod) bool { return p.daemonNode == n && !p.gone && !p.ended }) {
			continue
		}
		o.serial++
		obj := o.pod(fmt.Sprintf("%s-%05x", o.key.name, o.serial))
		obj.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{n.obj.Name}}}}},
		}}}
		obj.Spec.Tolerations = append(slices.Clip(obj.Spec.Tolerations), daemonTolerations...)
		if p := w.addPod(obj, o); p != nil {
			p.daemonNode = n
		}
	}
}

// daemonTolerations are those that the DaemonSet controller adds.
var daemonTolerations = func() (out []v1.Toleration) {
	for _, key := range []string{v1.TaintNodeNotReady, v1.TaintNodeUnreachable, v1.TaintNodeDiskPressure, v1.TaintNodeMemoryPressure, v1.TaintNodePIDPressure, v1.TaintNodeUnschedulable} {
		out = append(out, v1.Toleration{Key: key, Operator: v1.TolerationOpExists})
	}
	return out
}()

// runsOn tells whether the DaemonSet wants a pod on the node.
func (o *controller) runsOn(n *node) bool {
	p := &v1.Pod{Spec: o.template.Spec}
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(n.obj); !ok || err != nil {
		return false
	}
	_, bad := corehelper.FindMatchingUntoleratedTaint(klog.Background(), n.obj.Spec.Taints, append(slices.Clip(p.Spec.Tolerations), daemonTolerations...),
		func(t *v1.Taint) bool { return t.Effect != v1.TaintEffectPreferNoSchedule }, false)
	return !bad
}

// pod makes a pod of the template.
func (o *controller) pod(name string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.key.namespace, Name: name, Labels: o.template.Labels, Annotations: o.template.Annotations,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: o.version, Kind: o.key.kind, Name: o.key.name, UID: o.meta.UID, Controller: new(true)}},
	}, Spec: o.template.Spec}
	return p
}
