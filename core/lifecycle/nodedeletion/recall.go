package nodedeletion

// This file recalls nodes: has them stay, though they are on their way out, for pods that have
// come since and for which a node would be bought. What must be true: nobody has lost anything by
// the removal yet. No pod has been told to leave, but for daemon pods, and the provider hasn't been
// asked.

import (
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// Recallable returns the nodes that could stay: those with pods in front, which needn't be moved
// then, otherwise by name. It costs O(nodes on their way out); the nodes as they would be are made
// when somebody asks for them, which costs more.
func (m *Machine) Recallable(state *cluster.State) []autoscaler.Recallable {
	if len(m.planned) == 0 {
		return nil
	}
	begun := map[string]bool{} // atomic groups of which a node can't stay any more
	sets := map[string]bool{}  // nodes that go together, of which one can't
	for _, d := range m.deletions {
		if d.with != "" && !d.recallable() {
			sets[d.with] = true
		}
		if atomic(state.Group(d.group)) && !d.recallable() {
			begun[d.group] = true
		}
	}
	var occupied, empty []autoscaler.Recallable
	for _, name := range m.names((*deletion).recallable) {
		d, n := m.deletions[name], state.NodeByName(name)
		switch {
		case begun[d.group] || sets[d.with] || n.Object.DeletionTimestamp != nil:
		case d.drains():
			occupied = append(occupied, d.asRecallable(n.NodeInfo))
		default:
			empty = append(empty, d.asRecallable(n.NodeInfo))
		}
	}
	return append(occupied, empty...)
}

func (d *deletion) asRecallable(n *cluster.NodeInfo) autoscaler.Recallable {
	marking := d.marking // which doesn't change with d
	return autoscaler.Recallable{Node: n.Name, Stays: func() *cluster.NodeInfo { return marking.off(n) }}
}

// recallable reports whether the node could stay. One that another process has marked is looked at
// first: pods may be leaving it. Who has left it by then isn't known, nor where they are to go.
func (d *deletion) recallable() bool { return !d.interrupted && d.undisturbed() }

// undisturbed reports whether the removal has touched nothing yet: no pod was evicted, and the provider wasn't called.
func (d *deletion) undisturbed() bool {
	switch s := d.state.(type) {
	case tainting, tainted:
		return true
	case drainingPods:
		return !s.Begun()
	case delayed, batched:
		return !d.drains()
	}
	return false
}

// surging reports whether members of a pod group are on the node that leave together, and only when all
// have successors.
func (d *deletion) surging() bool {
	s, ok := d.state.(drainingPods)
	return ok && s.Surging()
}

// evicted reports whether pods may have been told to leave.
func (d *deletion) evicted() bool {
	_, taken := d.state.(resumed)
	return d.drains() && !taken && !d.undisturbed()
}

// Recall has nodes stay that a plan needs, if why says for what; "" has one go on. Of an atomic
// group all stay, or none. A node that can't stay any more goes on, too.
func (m *Machine) Recall(t *lifecycle.Turn, recalls []autoscaler.Recall, why func(*autoscaler.Recall) string) {
	if len(recalls) == 0 {
		return
	}
	could := map[string]bool{}
	for _, n := range m.Recallable(t.State) {
		could[n.Node] = true
	}
	for i := range recalls {
		name := recalls[i].Node
		if !could[name] || m.deletions[name].stays() { // as one does whose atomic group stays
			continue
		}
		if reason := why(&recalls[i]); reason != "" {
			m.endTogether(t, name, reason, m.recall)
		}
	}
}

func (m *Machine) recall(t *lifecycle.Turn, name string, d *deletion, why string) {
	m.unmark(t, name, d, step.NodeRecalled, why)
	t.Emit(step.NodeEvent(t.State.NodeByName(name).Object, "ScaleDownCancelled", "ScalingDown", "removal cancelled: "+why))
}
