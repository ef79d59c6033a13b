package sim

import (
	"fmt"
	"math"
	"time"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
)

// This file is the pods of the API server: their creation, binding and deletion there,
// and what kubelets do with them. A pod comes by addPod and goes by removePod; in
// between
//
//	pending ── bind ──▶ bound ── pull: images are there ──▶ running ── its time is over ──▶ ended
//
// and deletePod asks it to terminate in any of these states, at once if no kubelet has it.

// pod is a pod as the API server has it. Its object is never changed: a changed copy
// takes its place, since Berth has read the former one.
type pod struct {
	obj         *v1.Pod
	name        string // namespace/name
	controller  *controller
	ordinal     int   // of a StatefulSet's pod, -1 for others
	daemonNode  *node // of a DaemonSet's pod
	arrived     time.Duration
	cpu, memory int64 // requests, in milli-CPU and bytes
	gpus        int64
	node        *node // whose kubelet has it, nil for none
	pull        *flow // of its images, nil before
	ready       bool
	ended       bool // succeeded or failed
	gone        bool
	lost        bool              // its node went under it
	nominated   int               // the call that wrote its nomination
	budgets     []*budget         // that select it
	counted     podCount          // what they count of it
	claims      map[string]string // the resource claims that were made for it, by their name in the pod
	replaces    *displaced        // whose replacement it is, nil for nobody's and when it has run
}

// terminating reports whether the pod is being deleted.
func (p *pod) terminating() bool { return p.obj.DeletionTimestamp != nil }

// active reports whether the pod counts for its controller.
func (p *pod) active() bool { return !p.ended && !p.gone && !p.terminating() }

// addPod creates a pod like the object given, of a controller or nil for the one that it
// names. It returns nil when there is a pod of that name.
func (w *World) addPod(template *v1.Pod, o *controller) *pod {
	obj := *template
	w.serial++
	if obj.UID == "" {
		obj.UID = types.UID(fmt.Sprintf("%s/%s#%d", obj.Namespace, obj.Name, w.serial))
	}
	if obj.CreationTimestamp.IsZero() {
		obj.CreationTimestamp = w.stamp()
	}
	if obj.Spec.SchedulerName == "" {
		obj.Spec.SchedulerName = v1.DefaultSchedulerName
	}
	w.claimsFor(&obj, o)
	p := &pod{obj: &obj, name: obj.Namespace + "/" + obj.Name, controller: o, arrived: w.now, ordinal: -1}
	if old := w.byName[p.name]; old != nil && !old.gone {
		return nil
	}
	req := resourcehelper.PodRequests(&obj, resourcehelper.PodResourcesOptions{})
	p.cpu, p.memory, p.gpus = req.Cpu().MilliValue(), req.Memory().Value(), gpusOf(req)
	if o == nil {
		o = w.controllerOf(&obj)
	}
	if p.controller = o; o != nil {
		o.pods = append(o.pods, p)
	}
	w.pods[obj.UID], w.byName[p.name] = p, p
	w.findBudgets(p)
	w.stats.replaced(p)
	bound := obj.Spec.NodeName
	if bound == "" {
		obj.Status.Phase = v1.PodPending
	}
	w.stats.podAdded(p, bound != "")
	w.publishPod(p)
	w.syncPodLater(p)
	if bound != "" {
		w.assignToNode(p, bound)
		if obj.Status.Phase == v1.PodRunning {
			w.started(p)
		}
	}
	w.noteChange()
	return p
}

// changePod replaces the pod's object by a changed copy, which Berth's watch shows.
func (w *World) changePod(p *pod, f func(o *v1.Pod)) {
	obj := *p.obj
	f(&obj)
	p.obj = &obj
	w.publishPod(p)
}

// bind assigns a pod to a node, as the API server's binding subresource does. A pod that
// is on that node already is no error: so a client finds that looks into the conflict.
func (w *World) bind(uid types.UID, node string) error {
	p := w.pods[uid]
	switch {
	case p == nil || p.gone:
		return fmt.Errorf("pods %q not found", uid)
	case p.terminating() || p.ended:
		return fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", p.name)
	case p.obj.Spec.NodeName == node:
		return nil
	case p.obj.Spec.NodeName != "":
		return fmt.Errorf("pod %s is already assigned to node %q", p.name, p.obj.Spec.NodeName)
	}
	w.changePod(p, func(o *v1.Pod) {
		o.Spec.NodeName = node
		o.Status.NominatedNodeName = ""
		o.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue}}
	})
	w.checkDevicesOf(p)
	w.gangBound(p)
	w.syncPodLater(p)
	w.stats.podBound(p)
	w.assignToNode(p, node)
	w.noteChange()
	return nil
}

// grace returns how long the pod may take to terminate by itself.
func (p *pod) grace() time.Duration {
	return time.Duration(min(ptr.Deref(p.obj.Spec.TerminationGracePeriodSeconds, v1.DefaultTerminationGracePeriodSeconds), math.MaxInt32)) * time.Second
}

// deletePod deletes a pod as the API does.
func (w *World) deletePod(p *pod) { w.terminatePod(p, p.grace()) }

// terminatePod deletes a pod: at once when no kubelet has it, otherwise when its kubelet has
// stopped it, within the grace period given but for faults.
func (w *World) terminatePod(p *pod, within time.Duration) {
	if p.gone || p.terminating() {
		return
	}
	w.noteChange()
	if p.node == nil && p.obj.Spec.NodeName == "" || p.ended {
		w.removePod(p)
		return
	}
	grace := int64(within.Seconds())
	w.changePod(p, func(o *v1.Pod) {
		at := metav1.NewTime(w.stamp().Add(within))
		o.DeletionTimestamp, o.DeletionGracePeriodSeconds = &at, &grace
	})
	w.recountBudgets(p)
	w.after(w.timeToStop(p, within), phaseWorld, func() { w.removePod(p) })
	w.reconcile(p.controller)
}

// removePod takes the pod's object out of the API.
func (w *World) removePod(p *pod) {
	if p.gone {
		return
	}
	p.gone = true
	w.memberLost(p)
	w.takeOffNode(p)
	w.recountBudgets(p)
	if !p.ended {
		w.stats.podGone(p)
	}
	delete(w.pods, p.obj.UID)
	if w.byName[p.name] == p {
		delete(w.byName, p.name)
	}
	w.publish("pods", step.PodGone{UID: p.obj.UID})
	w.claimsReleased(p)
	if p.controller != nil {
		p.controller.podGone(p)
		w.reconcile(p.controller)
	}
	w.noteChange()
}

// endPod has a pod succeed or fail. Its object stays in the API; for Berth's watch, which
// leaves out ended pods, it is gone.
func (w *World) endPod(p *pod, phase v1.PodPhase) {
	if p.gone || p.ended {
		return
	}
	p.ended, p.ready = true, false
	w.memberLost(p)
	w.stats.podEnded(p, phase == v1.PodSucceeded)
	w.takeOffNode(p)
	w.recountBudgets(p)
	obj := *p.obj
	obj.Status.Phase = phase
	p.obj = &obj
	w.publish("pods", step.PodGone{UID: p.obj.UID})
	w.claimsReleased(p)
	if p.controller != nil {
		p.controller.podEnded(p, phase == v1.PodSucceeded)
		w.reconcile(p.controller)
	}
	w.noteChange()
}

// collectOrphan has the pod garbage collector remove a pod whose node doesn't exist.
func (w *World) collectOrphan(p *pod) {
	w.after(w.between(nil, 10000, 40000, "gc", string(p.obj.UID)), phaseWorld, func() { w.removePod(p) })
}
