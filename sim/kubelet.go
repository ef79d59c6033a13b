package sim

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/sim/scenario"
)

// This file is the kubelets: what happens to a pod from its binding until it runs. An
// image is pulled once for each node, layer by layer, and a node pulls for one pod at a
// time; the others wait, in the order in which they came.

// assignToNode gives a bound pod to its node's kubelet, or to the garbage collector if
// there is no such node.
func (w *World) assignToNode(p *pod, name string) {
	n := w.nodes[name]
	if n == nil || n.lingers {
		w.collectOrphan(p)
		return
	}
	p.node = n
	n.pods = append(n.pods, p)
	if !p.daemon() {
		n.noteUsed()
	}
	w.stats.requested(p, 1)
	w.after(w.between(nil, 50, 1000, "sync", string(p.obj.UID)), phaseWorld, func() { w.pull(p) })
}

// takeOffNode ends what the kubelet does with a pod, if it has it.
func (w *World) takeOffNode(p *pod) {
	w.storage.stop(p.pull)
	if p.node == nil {
		return
	}
	n := p.node
	p.node = nil
	n.pods = slices.DeleteFunc(n.pods, func(q *pod) bool { return q == p })
	w.stats.requested(p, -1)
	w.retryResizes(n)
}

// pull writes the layers of a pod's images that its node lacks, and then starts it.
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
	if n.pulling {
		n.waiting = append(n.waiting, p)
		return
	}
	n.pulling = true
	streams := max(w.run.Spec.Storage.PullStreams, 1)
	limit := min(n.diskRate, streams*limitOf(w.run.Spec.Registry.ConnectionRate))
	p.pull = w.storage.write(bytes, limit, streams, func() {
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

// started has the pod run, and succeed when its run time is over. Without the annotation,
// or with one that can't be read (running pods of a dump may have anything), it runs for
// ever.
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
	w.resizeLater(p)
	w.stats.podRunning(p)
	w.recountBudgets(p)
	w.noteChange()
	w.reconcile(p.controller)
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
