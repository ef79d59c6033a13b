package sim

import (
	"slices"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/sim/scenario"
)

// This file checks what Berth does to nodes that it deletes, and to the pods on them. What
// must hold: no eviction takes a pod that a budget needs; no pod loses its node before its
// grace period is over; Berth takes only its own taints and cordons off, and leaves none;
// and who was evicted runs again, if nobody but Berth has taken room from the cluster.

// nodeDuties are what Berth has done to a node, and what it mustn't touch.
type nodeDuties struct {
	cordoned bool // by Berth
	foreign  bool // it came with the taint of a removal that isn't Berth's
}

// checkEviction looks, after an eviction by Berth, whether each budget of the pod still has
// as many healthy pods as it needs. It counts them from nothing. A pod that moves for its resize may take as long to
// terminate as it says itself: its node isn't drained.
func (w *World) checkEviction(p *pod, grace *time.Duration, moves bool) {
	if !w.opt.Check {
		return
	}
	if !moves {
		w.checkGrace(p, grace)
	}
	if !p.ready {
		return
	}
	for _, b := range w.budgets {
		if !b.covers(p) {
			continue
		}
		healthy, expected := w.countAll(b)
		if desired := b.desired(expected); healthy < desired {
			w.violation("pod %s was evicted, which leaves budget %s %d of %d healthy pods", p.name, b.obj.Name, healthy, desired)
		}
	}
}

// checkGrace looks whether a pod was given more time to terminate than the drain's tiers allow.
func (w *World) checkGrace(p *pod, grace *time.Duration) {
	longest := time.Duration(0)
	tiers := w.run.Autoscale.DrainPriority
	if len(tiers) == 0 {
		tiers = []autoscaler.DrainTier{{Grace: w.run.Autoscale.MaxGracefulTermination}}
	}
	for _, tier := range tiers {
		if tier.Grace <= 0 {
			return // as long as the pod says
		}
		longest = max(longest, tier.Grace)
	}
	given := p.grace()
	if grace != nil {
		given = *grace
	}
	if longest > 0 && given > longest {
		w.violation("pod %s was evicted and given %s to terminate, more than the %s of its drain", p.name, given, longest)
	}
}

// countAll counts what a budget keeps counted, in O(pods).
func (w *World) countAll(b *budget) (healthy, expected int) {
	owners := map[*controller]bool{}
	for _, p := range w.pods {
		if p.ended || !b.covers(p) {
			continue
		}
		if p.ready && !p.terminating() && !p.lost {
			healthy++
		}
		switch {
		case p.controller == nil:
			expected++
		case !owners[p.controller]:
			owners[p.controller] = true
			expected += p.controller.replicas
		}
	}
	return healthy, expected
}

// checkTaint looks at a write of a taint by Berth, before it is made.
func (w *World) checkTaint(n *node, x step.Taint) {
	after := *n.obj
	x.Apply(&after)
	cordons, uncordons := after.Spec.Unschedulable && !n.obj.Spec.Unschedulable, n.obj.Spec.Unschedulable && !after.Spec.Unschedulable
	switch key := x.Taint.Key; {
	case key != autoscaler.ToBeDeletedTaint && key != autoscaler.DeletionCandidateTaint:
		w.violation("the taint %s of node %s isn't one of Berth's", key, n.obj.Name)
	case key == autoscaler.ToBeDeletedTaint && n.duties.foreign:
		w.violation("node %s has the taint of a removal that isn't Berth's, and Berth writes it", n.obj.Name)
	case uncordons && !n.duties.cordoned:
		w.violation("node %s was cordoned by somebody else, and Berth ends that", n.obj.Name)
	}
	n.duties.cordoned = (n.duties.cordoned || cordons) && !uncordons
}

// checkLost looks at a pod whose node Berth has deleted: it must have ended, or have had all
// the time to terminate that it was given. It reports whether the pod was there to stay.
func (w *World) checkLost(p *pod) (stayed bool) {
	switch {
	case p.ended || p.mirror():
		return false
	case !p.terminating():
		w.violation("node %s was removed under pod %s", p.obj.Spec.NodeName, p.name)
		return true
	case w.serverTime().Before(p.obj.DeletionTimestamp.Time):
		w.violation("node %s was removed under pod %s, %s before the end of its grace period", p.obj.Spec.NodeName, p.name, p.obj.DeletionTimestamp.Sub(w.serverTime()))
	}
	return false
}

// checkDrained looks, at rest, for what removals have left over.
func (w *World) checkDrained() {
	for _, n := range w.sortedNodes() {
		if n.dead {
			continue
		}
		if n.hasTaint(autoscaler.ToBeDeletedTaint) && !n.duties.foreign {
			w.violation("node %s has kept the taint of a removal", n.obj.Name)
		}
		if n.obj.Spec.Unschedulable && n.duties.cordoned {
			w.violation("node %s has stayed cordoned", n.obj.Name)
		}
	}
	if w.lacksRoom() {
		return
	}
	for _, p := range w.sortedPods() {
		if p.replaces != nil && p.obj.Spec.NodeName == "" && p.active() {
			w.violation("pod %s was evicted, and pod %s in its place has no home", p.replaces.name, p.name)
		}
	}
}

// roomFaults are the kinds of faults that may leave the cluster with less room than it had,
// and with no way to buy it back.
var roomFaults = []string{
	scenario.StockOut, scenario.LaunchFails, scenario.LaunchVanishes, scenario.NeverRegisters, scenario.NeverReady, scenario.WrongShape,
	scenario.ExtraInstance, scenario.NoTemplate, scenario.SpotReclaim, scenario.SpotWarning, scenario.ReclaimDraining, scenario.Cordon, scenario.Relabel,
	scenario.NodeMoves, scenario.SpotReplaced, scenario.TaintNode, scenario.ListedLate,
}

// lacksRoom reports whether somebody but Berth may have taken room that evicted pods need.
func (w *World) lacksRoom() bool {
	return w.roomTaken || w.stats.FailedLaunches+w.stats.CancelledLaunches > 0 ||
		slices.ContainsFunc(roomFaults, func(kind string) bool { return len(w.faults.byKind[kind]) > 0 })
}
