package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corehelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/core/cluster"
)

// This file is the controllers that create pods: ReplicaSet, ReplicationController,
// StatefulSet, DaemonSet and Job. Each looks at its object 50 to 300 ms after something has
// changed (reconcile), and creates the pods that are missing. What must hold: whoever
// changes a pod so that it counts no more, or adds a node, calls reconcile; and what a
// controller has seen of its pods when it last looked is in its object's status, which
// Berth's watch shows. Controllers delete no pods to scale down: replicas don't change in a
// scenario.

// controllerKey names a controller's object.
type controllerKey struct{ kind, namespace, name string }

// controller is one object of these kinds, with what its controller knows of it.
type controller struct {
	key         controllerKey
	meta        metav1.ObjectMeta
	version     string // apiVersion of the object
	template    v1.PodTemplateSpec
	replicas    int                        // Job: completions
	parallel    int                        // Job: pods at a time
	inOrder     bool                       // StatefulSet: one after the other
	claims      []v1.PersistentVolumeClaim // StatefulSet: templates
	pods        []*pod                     // that haven't ended and aren't gone
	succeeded   int                        // Job: completions so far
	missing     []*node                    // DaemonSet: nodes that may lack a pod
	serial      int                        // names pods, and the latency of reconcile
	reconciling bool                       // it will look at its object
	object      runtime.Object             // as it was created; a DaemonSet's isn't published again
	status      cluster.Replicas           // as it was published last
	statuses    int                        // looks at its own pods; names the latency of writeReplicas
	removed     bool
	owed        []*displaced  // pods that Berth evicted and that have no replacement yet
	moved       time.Duration // when a pod of it was first moved for a resize; 0 for never
}

// addController begins to reconcile an object. An object of another kind has no effect, nor
// has one without containers in its template, which a dump may have trimmed away.
func (w *World) addController(obj runtime.Object) {
	c := &controller{}
	switch x := obj.(type) {
	case *appsv1.ReplicaSet:
		*c = controller{key: controllerKey{"ReplicaSet", x.Namespace, x.Name}, meta: x.ObjectMeta, version: "apps/v1", template: x.Spec.Template, replicas: int(ptr.Deref(x.Spec.Replicas, 1))}
	case *v1.ReplicationController:
		*c = controller{key: controllerKey{"ReplicationController", x.Namespace, x.Name}, meta: x.ObjectMeta, version: "v1", replicas: int(ptr.Deref(x.Spec.Replicas, 1))}
		if x.Spec.Template != nil {
			c.template = *x.Spec.Template
		}
	case *appsv1.StatefulSet:
		*c = controller{key: controllerKey{"StatefulSet", x.Namespace, x.Name}, meta: x.ObjectMeta, version: "apps/v1", template: x.Spec.Template, replicas: int(ptr.Deref(x.Spec.Replicas, 1)),
			inOrder: x.Spec.PodManagementPolicy != appsv1.ParallelPodManagement, claims: x.Spec.VolumeClaimTemplates}
	case *appsv1.DaemonSet:
		*c = controller{key: controllerKey{"DaemonSet", x.Namespace, x.Name}, meta: x.ObjectMeta, version: "apps/v1", template: x.Spec.Template}
	case *batchv1.Job:
		parallel := ptr.Deref(x.Spec.Parallelism, 1)
		*c = controller{key: controllerKey{"Job", x.Namespace, x.Name}, meta: x.ObjectMeta, version: "batch/v1", template: x.Spec.Template,
			replicas: int(ptr.Deref(x.Spec.Completions, parallel)), parallel: int(parallel), succeeded: max(int(x.Status.Succeeded), 0)}
	default:
		return
	}
	if len(c.template.Spec.Containers) == 0 {
		return
	}
	if x := cluster.WorkloadOf(obj); x != nil {
		c.object, c.status = obj, x.Replicas
	}
	w.controllers[c.key] = c
	if c.key.kind == "DaemonSet" {
		w.daemons = append(w.daemons, c)
		c.missing = w.sortedNodes()
	}
	w.reconcile(c)
}

// controllerOf returns the controller that owns a pod, nil if there is none.
func (w *World) controllerOf(p *v1.Pod) *controller {
	if r := metav1.GetControllerOfNoCopy(p); r != nil {
		return w.controllers[controllerKey{r.Kind, p.Namespace, r.Name}]
	}
	return nil
}

// removeController deletes an object and its pods.
func (w *World) removeController(obj runtime.Object) {
	meta := obj.(metav1.Object)
	kind := strings.TrimPrefix(fmt.Sprintf("%T", obj), "*v1.")
	c := w.controllers[controllerKey{kind, meta.GetNamespace(), meta.GetName()}]
	if c == nil {
		return
	}
	c.removed = true
	delete(w.controllers, c.key)
	w.daemons = slices.DeleteFunc(w.daemons, func(x *controller) bool { return x == c })
	for _, p := range slices.Clone(c.pods) {
		w.deletePod(p)
	}
}

// podGone takes a removed pod from its controller's.
func (c *controller) podGone(p *pod) {
	c.pods = slices.DeleteFunc(c.pods, func(q *pod) bool { return q == p })
	c.lookAtNodeOf(p)
}

// lookAtNodeOf has a DaemonSet look again at the node that a pod was for.
func (c *controller) lookAtNodeOf(p *pod) {
	if c.key.kind == "DaemonSet" && p.daemonNode != nil && !p.daemonNode.dead {
		c.missing = append(c.missing, p.daemonNode)
	}
}

// podEnded takes a pod that has succeeded or failed from its controller's.
func (c *controller) podEnded(p *pod, succeeded bool) {
	c.pods = slices.DeleteFunc(c.pods, func(q *pod) bool { return q == p })
	if succeeded {
		c.succeeded++
	}
	c.lookAtNodeOf(p)
}

// reconcile has a controller look at its object a moment later and create the pods that
// are missing. It does nothing for nil: the pod that has changed has no controller.
func (w *World) reconcile(c *controller) {
	if c == nil || c.reconciling || c.removed {
		return
	}
	c.reconciling = true
	c.serial++
	w.after(w.between(nil, 50, 300, "reconcile", c.key.kind, c.key.namespace, c.key.name, fmt.Sprint(c.serial)), phaseWorld, func() {
		c.reconciling = false
		if !c.removed && !w.stalls(c) {
			w.createMissing(c)
		}
	})
}

// reconcileAll has every controller look at its object.
func (w *World) reconcileAll() {
	for _, key := range slices.SortedFunc(maps.Keys(w.controllers), func(a, b controllerKey) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
	}) {
		w.reconcile(w.controllers[key])
	}
}

// createMissing writes what the controller sees of its pods, and creates those that are
// missing, as the controller of the kind does. A ReplicaSet and a Job replace a terminating
// pod at once, a StatefulSet when it is gone. When the controller's watch shows it the pods
// that it has created, it writes that, too.
func (w *World) createMissing(c *controller) {
	w.writeReplicas(c)
	defer func(before int) {
		if len(c.pods) > before && c.key.kind != "DaemonSet" {
			c.statuses++
			w.after(w.between(nil, 50, 300, "replicas", c.key.kind, c.key.namespace, c.key.name, fmt.Sprint(c.statuses)), phaseWorld, func() { w.writeReplicas(c) })
		}
	}(len(c.pods))
	switch c.key.kind {
	case "DaemonSet":
		w.createMissingDaemons(c)
	case "StatefulSet":
		w.createMissingOrdered(c)
	default:
		want := c.wanted()
		for active := c.active(); active < want; active++ {
			c.serial++
			w.addPod(c.pod(fmt.Sprintf("%s-%05x", c.key.name, c.serial)), c)
		}
	}
}

// wanted returns how many pods there are to be.
func (c *controller) wanted() int {
	if c.key.kind == "Job" {
		return max(min(c.parallel, c.replicas-c.succeeded), 0)
	}
	return c.replicas
}

// active returns how many pods count.
func (c *controller) active() (n int) {
	for _, p := range c.pods {
		if p.active() {
			n++
		}
	}
	return n
}

// writeReplicas makes Berth's watch show how many pods there are and are to be, if that has
// changed.
func (w *World) writeReplicas(c *controller) {
	now := cluster.Replicas{Wanted: int32(c.wanted()), Existing: int32(c.active())}
	if c.removed || c.key.kind == "DaemonSet" || now == c.status {
		return
	}
	c.status = now
	w.publishWorkload(c.object, false)
}

// createMissingOrdered creates a StatefulSet's pods. A pod's successor has its name, so it
// waits until the pod is gone, and by default until all pods before it are ready.
func (w *World) createMissingOrdered(c *controller) {
	at := make([]*pod, c.replicas)
	for _, p := range c.pods {
		if p.ordinal < 0 { // it was there before its controller
			if i := strings.LastIndexByte(p.obj.Name, '-'); i >= 0 {
				fmt.Sscan(p.obj.Name[i+1:], &p.ordinal)
			}
		}
		if p.ordinal >= 0 && p.ordinal < c.replicas {
			at[p.ordinal] = p
		}
	}
	for i, p := range at {
		if p == nil {
			if q := w.addPod(c.pod(fmt.Sprintf("%s-%d", c.key.name, i)), c); q != nil {
				q.ordinal = i
			}
		}
		if c.inOrder && (p == nil || !p.ready || !p.active()) {
			return
		}
	}
}

// reconcileUnboundDaemons has the DaemonSets look at a dead node for which they have pods that were never
// bound: no garbage collector deletes these.
func (w *World) reconcileUnboundDaemons(n *node) {
	for _, d := range w.daemons {
		if slices.ContainsFunc(d.pods, func(p *pod) bool { return p.unboundFor(n) }) {
			d.missing = append(d.missing, n)
			w.reconcile(d)
		}
	}
}

// unboundFor reports whether the pod is a DaemonSet's for a node that it isn't bound to.
func (p *pod) unboundFor(n *node) bool { return p.daemonNode == n && p.obj.Spec.NodeName == "" }

// createMissingDaemons creates a DaemonSet's pods on the nodes that may lack one, and deletes unbound
// ones of dead nodes.
func (w *World) createMissingDaemons(c *controller) {
	nodes := c.missing
	c.missing = nil
	for _, n := range nodes {
		if n.dead {
			for _, p := range slices.Clone(c.pods) {
				if p.unboundFor(n) {
					w.deletePod(p)
				}
			}
			continue
		}
		if !c.runsOn(n) || slices.ContainsFunc(c.pods, func(p *pod) bool { return p.daemonNode == n && !p.gone && !p.ended }) {
			continue
		}
		c.serial++
		obj := c.pod(fmt.Sprintf("%s-%05x", c.key.name, c.serial))
		obj.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{n.obj.Name}}}}},
		}}}
		obj.Spec.Tolerations = append(slices.Clip(obj.Spec.Tolerations), daemonTolerations...)
		if p := w.addPod(obj, c); p != nil {
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

// runsOn reports whether the DaemonSet wants a pod on a node: the node matches the template's
// node selector and required affinity, and has no taint but those that the pod tolerates.
func (c *controller) runsOn(n *node) bool {
	p := &v1.Pod{Spec: c.template.Spec}
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(n.obj); !ok || err != nil {
		return false
	}
	_, bad := corehelper.FindMatchingUntoleratedTaint(klog.Background(), n.obj.Spec.Taints, append(slices.Clip(p.Spec.Tolerations), daemonTolerations...),
		func(t *v1.Taint) bool { return t.Effect != v1.TaintEffectPreferNoSchedule }, false)
	return !bad
}

// pod returns a pod of the template, owned by the controller. It shares the template's
// fields, which nobody changes.
func (c *controller) pod(name string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.key.namespace, Name: name, Labels: c.template.Labels, Annotations: c.template.Annotations,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: c.version, Kind: c.key.kind, Name: c.key.name, UID: c.meta.UID, Controller: new(true)}},
	}, Spec: c.template.Spec}
	return p
}
