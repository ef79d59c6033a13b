package sim

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/seeded"
)

// This file is the informers of Berth: the list when a process starts, and changes after
// that. What must hold: changes of one kind arrive in the order in which they were made,
// and those of two kinds in any order, as with real watches.

// watch is what is on its way to the informer of one kind.
type watch struct {
	waiting []step.Input  // not delivered yet, in order
	last    time.Duration // when the last of them arrives
	serial  int           // of the last change; names its latency
}

// publish makes Berth's informer of a kind deliver a change some time later, and not before
// changes of that kind that came earlier, nor while the watch stalls. While Berth is down
// nothing is delivered: the next process lists what exists.
func (w *World) publish(kind string, in step.Input) {
	q := w.watch[kind]
	if q == nil {
		q = &watch{}
		w.watch[kind] = q
	}
	if !w.berth.running() {
		return
	}
	q.serial++
	at := w.now + w.between(w.run.Spec.API.WatchLatency, 10, 100, "watch", kind, fmt.Sprint(q.serial))
	q.last = max(q.last, at, w.faults.stalled)
	q.waiting = append(q.waiting, in)
	life := w.berth.life
	w.after(q.last-w.now, phaseWatch, func() {
		if life == w.berth.life && len(q.waiting) > 0 {
			w.berth.receive(q.waiting[0])
			q.waiting = q.waiting[1:]
		}
	})
}

// The kinds of objects that have a watch of their own. The others came to worlds before and share one.
const (
	claimWatch  = "resourceclaims"
	sliceWatch  = "resourceslices"
	ruleWatch   = "devicetaintrules"
	objectWatch = "objects"
)

// watchOf returns the watch that shows objects of a kind.
func watchOf(kind cluster.ObjectKind) string {
	switch kind {
	case cluster.ResourceClaimKind:
		return claimWatch
	case cluster.ResourceSliceKind:
		return sliceWatch
	case cluster.DeviceTaintRuleKind:
		return ruleWatch
	}
	return objectWatch
}

// caughtUp returns when Berth has seen all changes that a watch shows until now.
func (w *World) caughtUp(watch string) time.Duration {
	if q := w.watch[watch]; q != nil && len(q.waiting) > 0 {
		return q.last
	}
	return w.now
}

// running reports whether Berth takes changes: it is up, or the world is being made.
func (b *berth) running() bool { return b == nil || b.up }

// publishPod and publishNode show Berth an object as it is now. It sees it after the watch's latency, and
// never before what it was shown of the same kind earlier.
func (w *World) publishPod(p *pod) { w.publish("pods", step.PodSet{Pod: p.obj}) }

func (w *World) publishNode(n *node) { w.publish("nodes", step.NodeSet{Node: n.obj, Group: n.group}) }

// publishWorkload shows Berth a workload with its status, which are one object but may be two inputs.
func (w *World) publishWorkload(obj runtime.Object, gone bool) {
	for _, in := range w.workloadInput(obj, gone) {
		w.publish("workloads", in)
	}
}

// workloadInput returns the input that Berth's informers make of a workload with its status
// as it is now, none for an object of another kind.
func (w *World) workloadInput(obj runtime.Object, gone bool) []step.Input {
	if d, ok := obj.(*appsv1.DaemonSet); ok && !gone {
		return []step.Input{step.DaemonSetSet{DaemonSet: d}}
	}
	x := cluster.WorkloadOf(obj)
	switch {
	case x == nil:
		return nil
	case gone:
		return []step.Input{step.WorkloadGone{Kind: x.Kind, Namespace: x.Namespace, Name: x.Name}}
	}
	if c := w.controllers[controllerKey{string(x.Kind), x.Namespace, x.Name}]; c != nil {
		x.Replicas = c.status
	}
	return []step.Input{step.WorkloadSet{Workload: x}}
}

// list puts into the inbox what informers deliver first: all that exists, in an order that
// the seed shuffles.
func (b *berth) list() {
	w := b.w
	var in []step.Input
	for _, n := range w.sortedNodes() {
		in = append(in, step.NodeSet{Node: n.obj, Group: n.group})
	}
	for _, p := range w.sortedPods() {
		if !p.ended {
			in = append(in, step.PodSet{Pod: p.obj})
		}
	}
	in = append(in, w.storedInputs()...)
	for _, obj := range w.run.Objects {
		in = append(in, w.workloadInput(obj, false)...)
	}
	for i := range w.run.Arrivals {
		a := &w.run.Arrivals[i]
		if a.At <= w.now && (a.DeleteAfter == 0 || a.At+a.DeleteAfter > w.now) {
			for _, obj := range a.Objects {
				in = append(in, w.workloadInput(obj, false)...)
			}
		}
	}
	for i := len(in) - 1; i > 0; i-- {
		k := int(seeded.Uint64(w.seed, "list", fmt.Sprint(b.life), fmt.Sprint(i)) % uint64(i+1))
		in[i], in[k] = in[k], in[i]
	}
	b.inbox = append(b.inbox, in...)
}
