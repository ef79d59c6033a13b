package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/berthproject/berth/sim/scenario"
)

// pod is a pod as the API server has it. Its object is never changed; a new
// one takes its place.
type pod struct {
	obj         *v1.Pod
	name        string // namespace/name
	controller  *controller
	ordinal     int   // of a StatefulSet's pod
	daemonNode  *node // of a DaemonSet's pod
	arrived     time.Duration
	cpu, memory int64 // requests, in milli-CPU and bytes
	node        *node
	pull        *flow
	ready       bool
	ended       bool // succeeded or failed
	gone        bool
	lost        bool // its node went under it
}

// terminating tells whether the pod is being deleted.
func (p *pod) terminating() bool { return p.obj.DeletionTimestamp != nil }

// active tells whether the pod is there and wanted.
func (p *pod) active() bool { return !p.ended && !p.gone && !p.terminating() }

// addPod creates a pod from a template object.
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
		return nil // the API refuses it: the name is taken
	}
	req := resourcehelper.PodRequests(&obj, resourcehelper.PodResourcesOptions{})
	p.cpu, p.memory = req.Cpu().MilliValue(), req.Memory().Value()
	if o == nil {
		o = w.controllerOf(&obj)
	}
	if p.controller = o; o != nil {
		o.pods = append(o.pods, p)
	}
	w.pods[obj.UID], w.byName[p.name] = p, p
	bound := obj.Spec.NodeName
	if bound == "" {
		obj.Status.Phase = v1.PodPending
	}
	w.stats.podAdded(p, bound != "")
	w.publishPod(p)
	if bound != "" {
		w.assignToNode(p, bound)
		if obj.Status.Phase == v1.PodRunning {
			w.started(p)
		}
	}
	w.noteChange()
	return p
}

// changePod replaces the pod's object by a changed copy and lets everybody see.
func (w *World) changePod(p *pod, f func(o *v1.Pod)) {
	obj := *p.obj
	f(&obj)
	p.obj = &obj
	w.publishPod(p)
}

// bind assigns a pod to a node, as the API server's binding subresource does.
func (w *World) bind(uid types.UID, node string) error {
	p := w.pods[uid]
	switch {
	case p == nil || p.gone:
		return fmt.Errorf("pods %q not found", uid)
	case p.terminating() || p.ended:
		return fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", p.name)
	case p.obj.Spec.NodeName == node:
		return nil // what a client finds out that looks into the conflict
	case p.obj.Spec.NodeName != "":
		return fmt.Errorf("pod %s is already assigned to node %q", p.name, p.obj.Spec.NodeName)
	}
	w.changePod(p, func(o *v1.Pod) {
		o.Spec.NodeName = node
		o.Status.NominatedNodeName = ""
		o.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue}}
	})
	w.stats.podBound(p)
	w.assignToNode(p, node)
	w.noteChange()
	return nil
}

// assignToNode gives the pod to its node's kubelet.
func (w *World) assignToNode(p *pod, name string) {
	n := w.nodes[name]
	if n == nil {
		w.collectOrphan(p)
		return
	}
	p.node = n
	n.pods = append(n.pods, p)
	w.stats.requested(p.cpu, p.memory)
	w.after(w.between(nil, 50, 1000, "sync", string(p.obj.UID)), phaseWorld, func() { w.pull(p) })
}

// deletePod asks the pod to go: at once when it isn't anywhere, else after its
// node's kubelet has stopped it.
func (w *World) deletePod(p *pod) {
	if p.gone || p.terminating() {
		return
	}
	w.noteChange()
	if p.node == nil && p.obj.Spec.NodeName == "" || p.ended {
		w.removePod(p)
		return
	}
	grace := int64(30)
	if g := p.obj.Spec.TerminationGracePeriodSeconds; g != nil {
		grace = *g
	}
	w.changePod(p, func(o *v1.Pod) {
		at := metav1.NewTime(w.stamp().Add(time.Duration(grace) * time.Second))
		o.DeletionTimestamp, o.DeletionGracePeriodSeconds = &at, &grace
	})
	w.recountBudgets()
	stop := min(w.between(w.run.Spec.Kubelet.Stop, 500, 5000, "stop", string(p.obj.UID)), time.Duration(grace)*time.Second)
	w.after(stop, phaseWorld, func() { w.removePod(p) })
	w.reconcile(p.controller)
}

// removePod takes the pod out of the API.
func (w *World) removePod(p *pod) {
	if p.gone {
		return
	}
	p.gone = true
	w.takeOffNode(p)
	w.recountBudgets()
	if !p.ended {
		w.stats.podGone(p)
	}
	delete(w.pods, p.obj.UID)
	if w.byName[p.name] == p {
		delete(w.byName, p.name)
	}
	w.publish("pods", step.PodGone{UID: p.obj.UID})
	if p.controller != nil {
		p.controller.drop(p)
		w.reconcile(p.controller)
	}
	w.noteChange()
}

// takeOffNode takes the pod off its node.
func (w *World) takeOffNode(p *pod) {
	w.storage.stop(p.pull)
	if p.node == nil {
		return
	}
	n := p.node
	p.node = nil
	n.pods = slices.DeleteFunc(n.pods, func(q *pod) bool { return q == p })
	w.stats.requested(-p.cpu, -p.memory)
}

// endPod ends a pod with a phase: it ran to its end, or failed. Berth's watch
// doesn't show pods that are over.
func (w *World) endPod(p *pod, phase v1.PodPhase) {
	if p.gone || p.ended {
		return
	}
	p.ended, p.ready = true, false
	w.stats.podOver(p, phase == v1.PodSucceeded)
	w.takeOffNode(p)
	w.recountBudgets()
	obj := *p.obj
	obj.Status.Phase = phase
	p.obj = &obj
	w.publish("pods", step.PodGone{UID: p.obj.UID})
	if p.controller != nil {
		p.controller.ended(p, phase == v1.PodSucceeded)
		w.reconcile(p.controller)
	}
	w.noteChange()
}

// collectOrphan is a pod whose node doesn't exist: the garbage collector deletes it.
func (w *World) collectOrphan(p *pod) {
	w.after(w.between(nil, 10000, 40000, "gc", string(p.obj.UID)), phaseWorld, func() { w.removePod(p) })
}

// pull gets the pod's images onto its node, one after the other, and starts it.
func (w *World) pull(p *pod) {
	n := p.node
	if n == nil || p.gone || p.terminating() || n.dead {
		return
	}
	bytes := 0.0
	for i := range p.obj.Spec.Containers {
		for _, l := range w.images[p.obj.Spec.Containers[i].Image] {
			if !n.layers[l.Digest] {
				bytes += bytesOf(&l.Bytes)
			}
		}
	}
	if bytes == 0 {
		w.after(w.between(w.run.Spec.Kubelet.Start, 500, 2000, "start", string(p.obj.UID)), phaseWorld, func() { w.started(p) })
		return
	}
	if n.pulling { // one pull at a time
		n.waiting = append(n.waiting, p)
		return
	}
	n.pulling = true
	p.pull = w.storage.write(bytes, n.diskRate, max(w.run.Spec.Storage.PullStreams, 1), func() {
		for i := range p.obj.Spec.Containers {
			for _, l := range w.images[p.obj.Spec.Containers[i].Image] {
				n.layers[l.Digest] = true
			}
		}
		n.pulling = false
		waiting := n.waiting
		n.waiting = nil
		w.pull(p)
		for _, q := range waiting {
			w.pull(q)
		}
	})
}

// started has the pod run, and end when its time is over.
func (w *World) started(p *pod) {
	if p.node == nil || p.gone || p.terminating() || p.node.dead || p.ready {
		return
	}
	p.ready = true
	now := w.stamp()
	w.changePod(p, func(o *v1.Pod) {
		o.Status.Phase = v1.PodRunning
		o.Status.StartTime = &now
		o.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue}, {Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: now}}
	})
	w.stats.podRunning(p)
	w.recountBudgets()
	w.noteChange()
	w.reconcile(p.controller)
	// Annotations of running pods come from anybody: one that can't be read is
	// a pod that runs for ever.
	span, err := scenario.ParseRunFor(p.obj.Annotations[scenario.RunFor])
	if span == nil || err != nil {
		return
	}
	w.after(span.Between(w.chance("run", p.name)), phaseWorld, func() {
		if !p.terminating() {
			w.endPod(p, v1.PodSucceeded)
		}
	})
}
