package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/sim/checker"
)

// This file checks what must hold in every world (Options.Check): after each Step on what
// Berth knew when it decided, and in the end, when nothing has happened for long, on the
// world itself. The independent checker looks at placements; the checks here are about
// Berth's manners: nothing left over, nothing done again and again, nobody who waits
// though there is room.

// violation records that something happened that must not.
// Of a world that is broken through and through the first thousand are enough.
func (w *World) violation(format string, args ...any) {
	if len(w.stats.Violations) < 1000 {
		w.stats.Violations = append(w.stats.Violations, fmt.Sprintf("at %s: ", w.now)+fmt.Sprintf(format, args...))
	}
}

// checkStep verifies the core's own records after a Step, and the Step's placements
// with the independent checker, on what Berth knew when it decided.
// What Berth couldn't know isn't held against it.
func (w *World) checkStep(r *step.Ready) {
	for _, broken := range slices.Concat(w.berth.core().Invariants(), w.berth.core().StaleClasses()) {
		w.violation("broken invariant: %s", broken)
	}
	w.checkProvider(r)
	w.checkRoom(r)
	w.checkMoves(r)
	if len(r.Binds) == 0 {
		return
	}
	w.checkDevicesGiven(r)
	w.checkMembersBound(r)
	state := w.berth.core().State()
	var nodes []*v1.Node
	var pods []*v1.Pod
	state.Nodes(func(n *cluster.Node) {
		nodes = append(nodes, n.Object)
		for _, p := range n.Pods {
			obj := *w.byPlugins(p.Object, n.Object)
			obj.Spec.NodeName = n.Name
			pods = append(pods, &obj)
		}
	})
	placed := map[string]bool{}
	for _, b := range r.Binds {
		// Only placements of this Step are judged: those before were right when they were
		// made.
		placed[b.Namespace+"/"+b.Name] = true
	}
	for _, v := range checker.CheckPods(nodes, pods, func(p *v1.Pod) bool { return placed[p.Namespace+"/"+p.Name] }) {
		w.violation("%s", v)
	}
	for _, b := range r.Binds {
		if n := state.NodeByName(b.Node); n == nil || w.berth.leaving[b.Node] {
			w.violation("pod %s/%s was placed on node %s, which is gone or being removed", b.Namespace, b.Name, b.Node)
		}
	}
}

// checkQuiet verifies what must hold when nothing has happened for long: no taint, cordon,
// order or deletion is left over, nobody who was evicted lacks a home, Berth's lifecycles hold nothing, decisions have stopped, and
// no pod waits that could run.
func (w *World) checkQuiet() {
	if w.foreground > 0 {
		w.violation("the world has not come to rest: %d things are still to happen", w.foreground)
		return
	}
	if !w.berth.up {
		w.violation("Berth is down in the end")
		return
	}
	var nodes []*v1.Node
	for _, n := range w.sortedNodes() {
		if n.dead {
			continue
		}
		nodes = append(nodes, n.obj)
		if in := w.berth.core().State().NodeByName(n.obj.Name); in != nil && n.hasTaint(autoscaler.DeletionCandidateTaint) != in.HasTaint(autoscaler.DeletionCandidateTaint) {
			w.violation("node %s has a candidate's taint in the API: %t, and in the state: %t", n.obj.Name, n.hasTaint(autoscaler.DeletionCandidateTaint), in.HasTaint(autoscaler.DeletionCandidateTaint))
		}
	}
	w.checkDrained()
	w.checkIdle()
	w.checkTargets()
	for _, problem := range w.berth.core().Unsettled() {
		if !w.ofLingering(problem) && !w.ofPendingResize(problem) {
			w.violation("%s", problem)
		}
	}
	if n := w.berth.core().Stats().RefusedPlans; n > 0 {
		w.violation("%d plans were refused", n)
	}
	if n := w.berth.core().Stats().MissedWakeups; n > 0 {
		w.violation("%d pods were found schedulable by the leftover sweep only", n)
	}
	w.checkRest()
	w.checkDevicesAtRest()
	w.checkGroupsAtRest()
	w.checkPending(nodes)
	w.checkResizes(nodes)
}

// checkTargets looks, at rest, for groups that haven't the instances that they were asked for.
func (w *World) checkTargets() {
	for _, g := range w.groups {
		coming := 0
		for _, m := range g.instances {
			if m.state != isReady && m.node == nil {
				coming++
			}
		}
		if g.target != len(g.instances) && g.target > g.cfg.Min {
			w.violation("group %s is asked for %d instances and has %d", g.id, g.target, len(g.instances))
		}
		if coming > 0 && g.target > g.cfg.Min {
			w.violation("%d instances of group %s never became nodes and are still there", coming, g.id)
		}
	}
}

// checkRest looks for work that was done though nothing had happened.
func (w *World) checkRest() {
	w.noteUnused()
	w.stats.noteRest()
	rest := w.now - w.lastChange
	if n := w.stats.restDecisions; n > 0 {
		w.violation("%d decisions were made though nothing had happened for %s", n, restTime)
	}
	// The leftover sweep tries each pod every five minutes.
	if sweeps := int(rest/(5*time.Minute)) + 1; w.stats.restAttempts > w.stats.Pending*sweeps {
		w.violation("%d pods were tried %d times in %s in which nothing happened", w.stats.Pending, w.stats.restAttempts, rest)
	}
	// Why a node stays may be another as time passes: a pod of kube-system keeps it for an hour.
	if n := w.stats.restStays; n > 2*len(w.nodes) {
		w.violation("%d times it was said of %d nodes why they stay, though nothing had happened for %s", n, len(w.nodes), restTime)
	}
}

// noteUnused notes which nodes were bought for nothing, as it turned out.
// It isn't a violation: what a node was bought for may have gone.
func (w *World) noteUnused() {
	for _, n := range w.sortedNodes() {
		bought := n.instance != nil && n.instance.made > 0
		if bought && !slices.ContainsFunc(n.pods, func(p *pod) bool { return p.daemonNode == nil }) {
			w.stats.Unused = append(w.stats.Unused, n.obj.Name)
		}
	}
}

// checkPending looks for pods that wait though they would fit on a node, could preempt
// there, or would fit on a node that a group may add. It costs O(pending pods × nodes) runs
// of the checker.
// Pod groups are checked as a whole.
func (w *World) checkPending(nodes []*v1.Node) {
	var pods []*v1.Pod
	var pending, members []*pod
	for _, p := range w.sortedPods() {
		switch {
		case p.ended:
		case p.obj.Spec.NodeName != "":
			if n := w.nodes[p.obj.Spec.NodeName]; n != nil {
				pods = append(pods, w.byPlugins(p.obj, n.obj))
			}
		case p.active() && p.obj.Spec.SchedulingGroup != nil:
			members = append(members, p)
		case p.active() && len(p.obj.Spec.SchedulingGates) == 0:
			pending = append(pending, p)
		}
	}
	w.checkGroupsPending(members, nodes, pods)
	all := pods
	for _, p := range pending {
		pods := w.withRoomKept(p, all)
		// What the API says and what Berth does must agree in the end.
		if at := p.obj.Status.NominatedNodeName; at != w.berth.core().State().NominatedTo(p.obj.UID) {
			w.violation("pod %s says that it is nominated to %q, and Berth to %q", p.name, at, w.berth.core().State().NominatedTo(p.obj.UID))
		}
		for _, n := range nodes {
			if w.couldPreempt(p, n, nodes, pods) {
				w.violation("pod %s waits, though it could take the place of others on node %s", p.name, n.Name)
				break
			}
		}
		for _, n := range nodes {
			if checker.Fits(w.byPlugins(p.obj, n), n, nodes, pods) && w.storageFor(p.obj, n) && w.devicesFor(p, n) {
				w.violation("pod %s waits, though it would fit on node %s", p.name, n.Name)
				break
			}
		}
		for _, g := range w.groups {
			if w.mayGrow(g) && w.newNodeTakes(g, p, nodes, pods) {
				w.violation("pod %s waits, though a node more of group %s would take it", p.name, g.id)
				break
			}
		}
	}
}

// withRoomKept adds to the pods on nodes the stand-ins that a pod has to leave their room.
// A copy: the slice is shared by all pods.
func (w *World) withRoomKept(p *pod, pods []*v1.Pod) []*v1.Pod {
	state := w.berth.core().State()
	for _, n := range state.Nominations() {
		h := state.Headroom(n.Pod.StandIn)
		if h == nil || n.Pod.Priority < priority(p) || h.Admits(state.Schema.ParsePod(p.obj)) {
			continue
		}
		standIn := *n.Pod.Object
		standIn.Spec.NodeName = n.Name
		pods = append(pods[:len(pods):len(pods)], &standIn)
	}
	return pods
}

// mayGrow reports whether Berth's limits and the cloud allow a group one more node. Where
// plans are rare, Berth may not have made one yet.
// A group that Berth can't know to grow isn't held against it.
func (w *World) mayGrow(g *group) bool {
	maxNodes := w.run.Autoscale.Limits.MaxNodesTotal
	return !w.sick() && !g.mixed && !g.taintedNew && w.run.Autoscale.ScanInterval <= time.Minute && (maxNodes == 0 || len(w.nodes) < maxNodes) &&
		g.target < g.cfg.Max && (g.cfg.Stock == nil || g.target < *g.cfg.Stock)
}

// sick reports whether so many nodes aren't ready, in a world at rest, that the cluster isn't
// resized (--max-total-unready-percentage, --ok-total-unready-count).
// The rule is that of Cluster Autoscaler, of both limits.
func (w *World) sick() bool {
	unready := 0
	for _, n := range w.nodes {
		if !n.ready() {
			unready++
		}
	}
	limits := &w.run.Autoscale.Limits
	return unready > limits.OKTotalUnready && float64(unready) > limits.MaxTotalUnready/100*float64(len(w.nodes))
}

// newNodeTakes reports whether a pod would fit on a new node of a group, beside the pods
// that the DaemonSets put there.
func (w *World) newNodeTakes(g *group, p *pod, nodes []*v1.Node, pods []*v1.Pod) bool {
	n := g.cfg.NewNode(g.cfg.Name + "-more")
	all := append(nodes[:len(nodes):len(nodes)], n)
	return w.daemonsLeave(p.obj, n) && checker.Fits(w.byPlugins(p.obj, n), n, all, pods) && w.storageFor(p.obj, n) && w.devicesFor(p, n)
}

// couldPreempt reports whether a pod, if it may preempt at all, would fit on a node without
// the pods of lower priority there, of which pods may have stand-ins, which are in no API.
// Budgets are ignored: preemption may violate them.
func (w *World) couldPreempt(p *pod, n *v1.Node, nodes []*v1.Node, pods []*v1.Pod) bool {
	var others []*v1.Pod
	for _, q := range pods {
		if q.Spec.NodeName != n.Name || ptr.Deref(q.Spec.Priority, 0) >= priority(p) {
			others = append(others, q)
		}
	}
	never := ptr.Deref(p.obj.Spec.PreemptionPolicy, "") == v1.PreemptNever
	return len(others) < len(pods) && !never && checker.Fits(w.byPlugins(p.obj, n), n, nodes, others) && w.storageFor(p.obj, n) && w.devicesFor(p, n)
}

// daemonsLeave reports whether a pod would fit on a new node beside the pods that the
// DaemonSets would put there.
// Pods of DaemonSets come to each new node first.
func (w *World) daemonsLeave(p *v1.Pod, n *v1.Node) bool {
	on := &node{obj: n}
	var daemons []*v1.Pod
	for _, d := range w.daemons {
		if d.runsOn(on) {
			q := d.pod(d.key.name + "-more")
			q.Spec.NodeName = n.Name
			daemons = append(daemons, q)
		}
	}
	return checker.Fits(p, n, []*v1.Node{n}, daemons)
}
