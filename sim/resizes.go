package sim

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/internal/simulatedresizes"
	"github.com/berthproject/berth/sim/scenario"
)

// This file is resizes in place: somebody changes what a running pod requests, and its kubelet carries that out when
// the node has room. A resize that is pending is tried again when a pod leaves the node, or gets smaller there.

// resizeLater has a pod that has begun to run be resized, if it is to be.
func (w *World) resizeLater(p *pod) {
	to, err := scenario.ParseResize(p.obj.Annotations[scenario.ResizeTo])
	if to == nil || err != nil || len(p.obj.Spec.Containers) == 0 { // a dump may have anything
		return
	}
	w.after(to.After.Between(w.chance("resize", p.name)), phaseWorld, func() { w.resize(p, to.Requests) })
}

// resize writes other requests to a pod's spec, and has its kubelet look at them. What is allocated is written along
// with them, as kubelets have done since the pod started: only pods that are resized need it.
func (w *World) resize(p *pod, requests v1.ResourceList) {
	if !p.active() || p.node == nil {
		return
	}
	w.changePod(p, func(o *v1.Pod) {
		simulatedresizes.Allocate(o)
		o.Spec.Containers = slices.Clone(o.Spec.Containers)
		c := &o.Spec.Containers[0].Resources
		if c.Requests = maps.Clone(c.Requests); c.Requests == nil {
			c.Requests = v1.ResourceList{}
		}
		maps.Copy(c.Requests, requests)
	})
	w.stats.Resizes.Requested++
	w.noteChange()
	w.after(w.between(nil, 50, 1000, "sync resize", string(p.obj.UID)), phaseWorld, func() { w.syncResize(p) })
}

// syncResize has a kubelet decide about the resize of a pod: it is carried out, deferred, or infeasible.
func (w *World) syncResize(p *pod) {
	n := p.node
	if n == nil || n.dead || !p.active() || !simulatedresizes.Wanted(p.obj) {
		return
	}
	var pods []*v1.Pod
	for _, q := range n.pods {
		pods = append(pods, q.obj)
	}
	v, before := simulatedresizes.Decide(n.obj, pods, p.obj), simulatedresizes.Pending(p.obj)
	if v.Reason != "" && v.Reason == before {
		return
	}
	w.changePod(p, func(o *v1.Pod) { simulatedresizes.Apply(o, v, w.stamp()) })
	w.noteChange()
	switch v.Reason {
	case v1.PodReasonDeferred:
		w.stats.Resizes.Deferred++
	case v1.PodReasonInfeasible:
		w.stats.Resizes.Infeasible++
	default:
		w.stats.Resizes.Done++
		w.stats.requested(p, -1)
		allocated := simulatedresizes.Allocated(p.obj)
		p.cpu, p.memory = allocated.Cpu().MilliValue(), allocated.Memory().Value()
		w.stats.requested(p, 1)
		w.retryResizes(n)
	}
}

// retryResizes has a kubelet look again at the resizes that it has deferred, since a pod of its node is gone or has
// been resized: those of the highest priority first, then those that are pending longest.
func (w *World) retryResizes(n *node) {
	var list []*pod
	for _, p := range n.pods {
		if simulatedresizes.Pending(p.obj) == v1.PodReasonDeferred {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return
	}
	since := func(p *pod) int64 {
		for i := range p.obj.Status.Conditions {
			if c := &p.obj.Status.Conditions[i]; c.Type == v1.PodResizePending {
				return c.LastTransitionTime.Unix()
			}
		}
		return 0
	}
	slices.SortFunc(list, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(priority(b), priority(a)), cmp.Compare(since(a), since(b)), strings.Compare(a.name, b.name))
	})
	w.after(tick, phaseWorld, func() {
		for _, p := range list {
			w.syncResize(p)
		}
	})
}

// pendingResizes returns how many resizes are pending.
func (w *World) pendingResizes() (n int) {
	for _, p := range w.pods { // in any order: they are counted
		if p.active() && simulatedresizes.Pending(p.obj) != "" {
			n++
		}
	}
	return n
}
