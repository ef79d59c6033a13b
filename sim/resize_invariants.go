package sim

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/simulatedresizes"
	"github.com/berthproject/berth/sim/checker"
)

// This file checks what is done about resizes in place that kubelets have not begun. What must hold: no pod is evicted
// for one unless room is kept for its replacement, that room is kept once, and in the end no pod waits that could have
// moved.

// homePrefix begins the UIDs of the stand-ins that keep room for the replacements of evicted pods.
const homePrefix = "home/"

// checkMoves checks the evictions of a Step from nodes that stay.
func (w *World) checkMoves(r *step.Ready) {
	state := w.berth.core().State()
	for i := range r.Evictions {
		x := &r.Evictions[i]
		p, from := state.PodOn(x.UID), state.NodeByName(x.Node)
		if p == nil || from == nil || autoscaler.Going(from.NodeInfo) || simulatedresizes.Pending(p.Object) == "" {
			continue
		}
		home := state.NodeByName(state.NominatedTo(types.UID(homePrefix + string(x.UID))))
		switch {
		case home == nil:
			w.violation("pod %s is evicted, since its resize is pending, and no room is kept for its replacement", p.Name())
		case home.Name == x.Node || autoscaler.Going(home.NodeInfo):
			w.violation("pod %s is evicted from node %s, since its resize is pending, and room for its replacement is on node %s", p.Name(), x.Node, home.Name)
		case !slices.ContainsFunc(r.Binds, func(b step.Bind) bool { return b.Node == home.Name }): // one of higher priority may take the room
			w.checkHomesFit(home, p.Priority)
		}
	}
}

// checkHomesFit checks that the homes on a node have room beside its pods, but for those of a lower priority, which
// give way.
func (w *World) checkHomesFit(n *cluster.Node, priority int32) {
	state := w.berth.core().State()
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		have := n.Object.Status.Allocatable[name]
		sum := have.DeepCopy()
		sum.Sub(have)
		for _, p := range n.Pods {
			sum.Add(checker.Requests(p.Object)[name])
		}
		homes := []string{}
		for _, x := range state.Nominations() {
			if x.Name == n.Name && x.Pod.Priority >= priority && strings.HasPrefix(string(x.Pod.UID), homePrefix) {
				sum.Add(checker.Requests(x.Pod.Object)[name])
				homes = append(homes, x.Pod.Name())
			}
		}
		if sum.Cmp(have) > 0 {
			w.violation("node %s has %s %s for its pods and for the homes %v, which need %s", n.Name, have.String(), name, homes, sum.String())
		}
	}
}

// checkResizes looks, at rest, for resizes that wait though the kubelet could carry them out, and for pods that wait
// for one though they could move to where there is room.
func (w *World) checkResizes(nodes []*v1.Node) {
	for _, p := range w.sortedPods() {
		reason := simulatedresizes.Pending(p.obj)
		if n := p.node; reason == "" || n == nil || !p.active() {
			continue
		}
		w.syncResize(p) // it would have been tried again
		if simulatedresizes.Pending(p.obj) == "" {
			w.violation("the resize of pod %s is %s, though its node %s has room", p.name, reason, p.obj.Spec.NodeName)
			continue
		}
		if w.run.Autoscale.MoveResizesAfter == 0 || !w.mayMove(p) {
			continue
		}
		moved := *p.obj
		moved.Spec.NodeName, moved.Status = "", v1.PodStatus{}
		others := w.podsWithout(p)
		for _, n := range nodes {
			if n.Name != p.obj.Spec.NodeName && checker.Fits(&moved, n, nodes, others) {
				w.violation("pod %s waits for a resize that is %s, though it could move to node %s", p.name, reason, n.Name)
				break
			}
		}
		for _, g := range w.groups {
			more := g.cfg.NewNode(g.cfg.Name + "-more")
			if w.mayGrow(g) && w.daemonsLeave(&moved, more) && checker.Fits(&moved, more, append(nodes[:len(nodes):len(nodes)], more), others) {
				w.violation("pod %s waits for a resize that is %s, though it could move to one node more of group %s", p.name, reason, g.id)
				break
			}
		}
	}
}

// ofPendingResize reports whether what is left over is of a pod whose resize is pending: room for it is looked for again
// every few minutes, for ever. checkResizes says whether there is some.
func (w *World) ofPendingResize(problem string) bool {
	for _, p := range w.pods { // in any order: one is enough
		if p.active() && simulatedresizes.Pending(p.obj) != "" && (strings.Contains(problem, "pod "+p.name+" ") || strings.HasSuffix(problem, "pod "+p.name)) {
			return true
		}
	}
	return false
}

// podsWithout returns the pods on nodes but one.
func (w *World) podsWithout(p *pod) (out []*v1.Pod) {
	for _, q := range w.sortedPods() {
		if q != p && !q.ended && q.obj.Spec.NodeName != "" {
			out = append(out, q.obj)
		}
	}
	return out
}

// mayMove reports whether a pod may be evicted in any case: some that this leaves out may be, too, by the rules of
// scale-down.
func (w *World) mayMove(p *pod) bool {
	c := p.controller
	if c == nil || c.removed || c.key.kind == "DaemonSet" || p.obj.Namespace == cluster.SystemNamespace || len(p.obj.Annotations) > 1 || len(p.obj.Spec.Volumes) > 0 ||
		p.obj.Spec.SchedulingGroup != nil || c.moved > 0 && p.arrived >= c.moved || // it may have to wait for hours to move again
		c.replicas < w.run.Autoscale.Removal.MinReplicas || p.node.hasTaint(autoscaler.ToBeDeletedTaint) {
		return false
	}
	return w.disruptable(p)
}
