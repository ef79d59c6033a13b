package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/sim/scenario"
)

// This file is what goes wrong between what there is and what the cloud and the API say about it:
// instances that are listed late, change their group or have the ID of another; Node objects
// without an instance; clocks that differ.

// clockAhead returns how far the API server's clock is ahead of Berth's.
func (w *World) clockAhead() time.Duration {
	for i := range w.run.Spec.Faults {
		if x := &w.run.Spec.Faults[i]; x.Kind == scenario.ClockAhead && inForce(x, w.now, "") {
			return cmp.Or(x.For.Duration, time.Hour)
		}
	}
	return 0
}

// instanceID returns the ID of an instance.
func instanceID(g *group, name string) string { return "sim://" + g.cfg.Name + "/" + name }

// instance returns the instance of an ID, nil if there is none.
func (w *World) instance(id string) *instance {
	for _, g := range w.groups {
		if i := slices.IndexFunc(g.instances, func(m *instance) bool { return m.id == id }); i >= 0 {
			return g.instances[i]
		}
	}
	return nil
}

// listLate makes lists leave out an instance that was ordered for a while.
func (w *World) listLate(m *instance) {
	if x := w.faults.thatHits(w, scenario.ListedLate, m.group.cfg.Name, m.name); x != nil {
		late := cmp.Or(x.For.Duration, 2*time.Minute)
		m.listed = w.now + late
		w.after(late, phaseWorld, func() {
			m.group.listed = nil
			w.noteChange()
		})
	}
}

// freeTime is how long an instance is gone before another may have its name.
const freeTime = 5 * time.Minute

// nameAgain returns a name of an instance that is gone which the next one is to have, "" for none.
func (w *World) nameAgain(g *group) string {
	if !w.faults.hits(w, scenario.InstanceAgain, g.cfg.Name, g.cfg.Name, fmt.Sprint(g.serial)) {
		return ""
	}
	i := slices.IndexFunc(g.freed, func(f freed) bool {
		return w.now-f.at >= freeTime && w.nodes[f.name] == nil && w.instance(instanceID(g, f.name)) == nil
	})
	if i < 0 {
		return ""
	}
	name := g.freed[i].name
	g.freed = slices.Delete(g.freed, i, i+1)
	return name
}

// moveNode has the cloud have a node in another group, if both groups may have the sizes that
// follow: one that is being drained if there is such, otherwise, in a quarter of the cases, any.
func (w *World) moveNode(of string, pick func(int) int) {
	var all, drained []*instance
	for _, g := range w.groups {
		for _, m := range g.instances {
			if m.state != isReady || m.asked || m.node.dead || of != "" && g.cfg.Name != of || g.target <= g.cfg.Min {
				continue
			}
			all = append(all, m)
			if m.draining() {
				drained = append(drained, m)
			}
		}
	}
	if len(drained) > 0 {
		all = drained
	}
	if len(all) == 0 || len(drained) == 0 && pick(4) > 0 {
		return
	}
	m := all[pick(len(all))]
	to := slices.DeleteFunc(slices.Clone(w.groups), func(g *group) bool { return g == m.group || g.target >= g.cfg.Max })
	if len(to) == 0 {
		return
	}
	from, g := m.group, to[pick(len(to))]
	from.instances, from.listed = slices.DeleteFunc(from.instances, func(x *instance) bool { return x == m }), nil
	from.target--
	g.instances, g.listed = append(g.instances, m), nil
	g.target++
	g.lastExtra, g.mixed = w.now, g.mixed || w.blind()
	from.lastReclaim = w.now
	m.group, m.moved, m.node.group = g, w.now, g.id
	w.publishNode(m.node)
	w.noteChange()
}

// replaceInstance makes the cloud take an instance back and make another in its place.
func (w *World) replaceInstance(x *scenario.Fault, pick func(int) int) {
	m := w.reclaimInstance(x.Group, pick, func(m *instance) bool { return m.node != nil && !m.draining() })
	if m == nil {
		return
	}
	m.lingers = cmp.Or(x.For.Duration, 5*time.Minute)
	g := m.group
	g.target++
	w.launch(w.newInstance(g, w.instanceName(g)))
}

// unregister removes the Node object of a dead node, or has it stay.
func (w *World) unregister(n *node, byBerth bool) {
	m := n.instance
	x := w.faults.thatHits(w, scenario.NodeLingers, n.configured(), m.name)
	if x == nil && m.lingers == 0 {
		w.removeNode(n, byBerth)
		return
	}
	n.lingers = true
	w.losePods(n, byBerth)
	w.changeNode(n, func(o *v1.Node) {
		o.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionUnknown, LastTransitionTime: w.stamp()}}
		o.Spec.Taints = append(withoutTaint(o.Spec.Taints, v1.TaintNodeUnreachable), v1.Taint{Key: v1.TaintNodeUnreachable, Effect: v1.TaintEffectNoSchedule})
		if w.chance("finalizer", m.name) < 0.5 {
			now := w.stamp()
			o.DeletionTimestamp, o.Finalizers = &now, []string{"example.com/storage"}
		}
	})
	stays := m.lingers
	if x != nil && stays == 0 {
		stays = x.For.Duration
	}
	if stays > 0 {
		w.after(stays, phaseWorld, func() { w.removeNode(n, byBerth) })
	}
}

// lookedAt is the key of a taint that somebody puts on a node.
const lookedAt = "example.com/looked-at"

// taintNode lets somebody put a taint on a node, and take it off after a while, if ever.
func (w *World) taintNode(x *scenario.Fault, pick func(int) int) {
	n := w.anyNode(x.Group, pick)
	if n == nil {
		return
	}
	if n.instance != nil && (!n.ready() || w.blind()) {
		n.instance.group.taintedNew = true // Berth sees the node with the taint first, too
	}
	w.changeNode(n, func(o *v1.Node) {
		o.Spec.Taints = append(withoutTaint(o.Spec.Taints, lookedAt), v1.Taint{Key: lookedAt, Effect: v1.TaintEffectNoSchedule})
	})
	if x.For.Duration > 0 {
		w.after(x.For.Duration, phaseWorld, func() {
			if !n.dead {
				w.changeNode(n, func(o *v1.Node) { o.Spec.Taints = withoutTaint(o.Spec.Taints, lookedAt) })
			}
		})
	}
}

// noteUnknown marks the groups of whose nodes a Berth that starts sees only how they are now: one that
// came from another group is taken for one of the group's own, and so is the taint that somebody has
// put on all nodes that are ready. Until there are newer nodes Berth assumes that new ones are so.
func (w *World) noteUnknown() {
	for _, g := range w.groups {
		tainted, plain := 0, 0
		for _, m := range g.instances {
			n := m.node
			g.mixed = g.mixed || m.moved > 0
			switch {
			case n == nil:
			case !n.hasTaint(lookedAt):
				if n.ready() && !n.obj.Spec.Unschedulable && !m.draining() {
					plain++
				}
			case n.ready():
				tainted++
			default: // its taint counts as one with which it begins
				g.taintedNew = true
			}
		}
		g.taintedNew = g.taintedNew || tainted > 0 && plain == 0
	}
}

// blind reports whether Berth's watches don't show what happens.
func (w *World) blind() bool { return w.now <= w.faults.stalled }
