package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
)

// This file checks what Berth asks of the cloud. What must hold: no instance is given up within
// the time of its own order, and none is asked of a group that it has left; no more nodes are
// ordered than there are pods; a group that one list lacks is there; and a node that nobody needs
// goes, whatever has become of others.

// settled is how long after a change Berth has acted on it, unless its watches stall.
const settled = time.Minute

// watched is how long after a change Berth's watches show it, unless they stall.
const watched = 2 * time.Second

// checkProvider looks at what a Step asks of the cloud.
func (w *World) checkProvider(r *step.Ready) {
	for _, g := range w.groups {
		if g.toldAt >= 0 && w.berth.core().State().Group(g.id) == nil {
			w.violation("Berth has no node group %s, which one list didn't have", g.id)
			g.toldAt = -1
		}
	}
	w.checkNames()
	w.notePending()
	for i := range r.ScaleUps {
		w.checkOrder(&r.ScaleUps[i])
	}
	for i := range r.NodeDeletions {
		x := &r.NodeDeletions[i]
		repeated := slices.ContainsFunc(r.Decisions, func(d step.Decision) bool { return d.Kind == step.RemovalRepeated && d.Node == x.Node })
		w.checkDeletion(x, repeated)
	}
	for i := range r.Decisions {
		if r.Decisions[i].Kind == step.TargetLowered {
			w.checkGivenUp(&r.Decisions[i])
		}
	}
}

// waiting is how many pods waited at a time.
type waiting struct {
	at   time.Duration
	pods int
}

// notePending notes how many pods wait, of the last minute and of what Berth hasn't seen yet.
func (w *World) notePending() {
	from := w.now - settled
	if w.now < w.faults.stalled+settled {
		from = 0 // the stall may have begun long ago
	}
	w.waiting = slices.DeleteFunc(w.waiting, func(x waiting) bool { return x.at < from })
	if n := len(w.waiting); n > 0 && w.waiting[n-1].pods >= w.stats.Pending {
		w.waiting[n-1].at = w.now
		return
	}
	w.waiting = append(w.waiting, waiting{w.now, w.stats.Pending})
}

// checkOrder looks whether the nodes of a group that are coming are enough for all pods that wait:
// each takes one at least.
func (w *World) checkOrder(x *step.ScaleUp) {
	g := w.group(x.Group)
	if g == nil || g.atomic() || g.toldAt < 0 || g.target < g.cfg.Min || x.Nodes+g.target <= g.cfg.Min {
		return
	}
	coming, pods := 0, w.stats.Pending
	for _, m := range g.instances {
		if w.comes(m) {
			coming++
		}
	}
	for _, past := range w.waiting {
		pods = max(pods, past.pods)
	}
	if coming > 0 && coming+x.Nodes > pods {
		w.violation("%d nodes of group %s are ordered for %d pods at most, and %d are coming", x.Nodes, x.Group, pods, coming)
	}
}

// comes reports whether an instance is one that Berth knows of and waits for.
func (w *World) comes(m *instance) bool {
	limit := min(w.run.Autoscale.MaxProvisionTime, w.run.Autoscale.Readiness.StartupTime) - 30*time.Second
	if m.node != nil {
		if n := w.berth.core().State().NodeByName(m.name); n == nil || slices.ContainsFunc(n.Pods, func(p *cluster.Pod) bool { return !p.OfNode }) {
			return false // it has pods that tolerate that it isn't ready
		}
	}
	return m.failed == "" && (m.node == nil || !m.node.hasTaint(lookedAt)) && m.state != isReady && max(m.made, m.listed)+10*time.Second < m.group.toldAt && w.now-m.made < limit && !m.asked && !m.draining()
}

// checkDeletion looks at a deletion that Berth asks for. One that is repeated names the group of the
// first call.
func (w *World) checkDeletion(x *step.NodeDeletion, repeated bool) {
	m := w.instance(x.Instance)
	if m == nil || m.gone {
		return
	}
	if age, limit := w.now-m.made, w.run.Autoscale.MaxProvisionTime; x.Reason == step.InstanceLate && age < limit {
		w.violation("instance %s is deleted for being late %s after its order, within %s", m.name, age, limit)
	}
	since := max(m.moved, m.group.renamed)
	seen := w.now-since > watched && w.now > w.faults.stalled+watched
	if m.node == nil {
		seen = m.group.toldAt > max(since, w.cloud.overlapped)
	}
	if m.group.id != x.Group && seen && !repeated {
		w.violation("instance %s is to be deleted from group %s, and has been in group %s since %s", m.name, x.Group, m.group.id, since)
	}
}

// checkGivenUp looks whether so many instances that a group was asked for haven't come for long.
func (w *World) checkGivenUp(x *step.Decision) {
	g := w.group(x.Group)
	if g == nil {
		return
	}
	ordered := w.now - w.run.Autoscale.MaxProvisionTime
	late := 0
	for _, at := range g.vanished {
		if at <= ordered {
			late++
		}
	}
	for _, m := range g.instances {
		if m.made <= ordered && m.listed > g.toldAt {
			late++
		}
	}
	if x.Nodes > late {
		w.violation("%d instances of group %s are given up, and %d were ordered so long ago and aren't there", x.Nodes, x.Group, late)
	}
}

// ofLingering reports whether what is unsettled is of a dead node that the API shows.
func (w *World) ofLingering(problem string) bool {
	for _, n := range w.nodes { // in any order
		if n.lingers && strings.Contains(problem, "node "+n.obj.Name) {
			return true
		}
	}
	return false
}

// checkIdle looks, at rest, for nodes that nobody needs and that could go.
func (w *World) checkIdle() {
	if w.sick() || w.run.Autoscale.DisableScaleDown || w.now-w.lastChange < w.run.Autoscale.UnneededTime+restTime {
		return
	}
	for _, n := range w.sortedNodes() {
		m := n.instance
		if n.dead || m == nil || !n.ready() || n.obj.Spec.Unschedulable || m.group.target <= m.group.cfg.Min || n.duties.foreign {
			continue
		}
		in := w.berth.core().State().NodeByName(n.obj.Name)
		if in != nil && len(in.Nominated) == 0 && !slices.ContainsFunc(n.pods, func(p *pod) bool { return !p.daemon() }) {
			w.violation("node %s is empty and stays, though group %s may be smaller", n.obj.Name, m.group.id)
		}
	}
}
