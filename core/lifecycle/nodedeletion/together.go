package nodedeletion

// This file advances or ends the removals of nodes that go together: those whose pods leave together, and
// those of an atomic group. What must be true: members of pod groups that get successors together get them
// in one Step, when the drains of all these nodes are held for that (Drain.Held).

import (
	"slices"

	"github.com/berthproject/berth/core/lifecycle"
)

// surgeTogether releases drains that are held, once all that go together are, or ends them when not
// all members can have successors. Nothing was asked of any member before.
func (m *Machine) surgeTogether(t *lifecycle.Turn) {
	held := func(d *deletion) bool {
		s, ok := d.state.(drainingPods)
		return ok && s.Held()
	}
	seen := map[string]bool{} // what nodes have in common that were looked at
	for _, name := range m.names(held) {
		d := m.deletions[name]
		if !held(d) || seen[d.with] {
			continue // it ended or went on with another, or waits with it
		}
		set := []string{name}
		if d.with != "" {
			seen[d.with] = true
			set = m.names(func(o *deletion) bool { return o.with == d.with && !o.stays() })
		}
		if !m.allHeld(set) {
			continue
		}
		if stuck, why := m.whyNotTogether(t, set); why != "" {
			m.cancelDrain(t, stuck, m.deletions[stuck], why)
			continue
		}
		for _, other := range set {
			if s, ok := m.deletions[other].state.(drainingPods); ok {
				s.Release(t.Now)
			}
		}
		for _, other := range set {
			if _, ok := m.deletions[other].state.(drainingPods); ok {
				m.advanceDrain(t, other, m.deletions[other])
			}
		}
	}
}

// allHeld reports whether none of some nodes has members that get successors together and whose turn is
// still to come.
func (m *Machine) allHeld(set []string) bool {
	for _, name := range set {
		switch s := m.deletions[name].state.(type) {
		case tainting, tainted, resumed:
			return false
		case drainingPods:
			if s.Later() {
				return false
			}
		}
	}
	return true
}

// whyNotTogether returns the first of some nodes that keeps all of them from getting successors for their
// members, with why; "" when none does.
func (m *Machine) whyNotTogether(t *lifecycle.Turn, set []string) (stuck, why string) {
	leaves := func(node string) bool { return slices.Contains(set, node) }
	for _, name := range set {
		s, ok := m.deletions[name].state.(drainingPods)
		if !ok {
			continue
		}
		why := m.whyDrainEnds(t, name, m.deletions[name])
		if why == "" {
			why = s.WhyNoSuccessors(t.State, leaves)
		}
		if why != "" {
			return name, why
		}
	}
	return "", ""
}

// Interrupted records that the cloud is about to take a node that is on its way out: it waits for no other
// from here on, and no other ends with it, but for those of its atomic group.
func (m *Machine) Interrupted(t *lifecycle.Turn, node string) {
	d := m.deletions[node]
	if d == nil || d.interrupted || !d.planned() {
		return
	}
	d.interrupted, d.with, d.changed = true, "", t.Now
	if s, ok := d.state.(drainingPods); ok {
		s.Alone()
	}
}

// cancelDrain is cancel for a node that is drained. That pods left for nothing counts against the node: it
// isn't drained again at once.
func (m *Machine) cancelDrain(t *lifecycle.Turn, name string, d *deletion, why string) {
	vain := d.evicted()
	m.cancel(t, name, d, why)
	if vain {
		m.candidates.DrainedInVain(name, t.Now)
	}
}

// cancel ends a deletion with the node staying, and of an atomic group all that the provider
// wasn't asked to delete yet. The group doesn't shrink for a while, unless the deletion was
// another process's: that has only not been taken further.
// A group that fails to shrink is left alone for a while (ScaleDownFailed).
func (m *Machine) cancel(t *lifecycle.Turn, name string, d *deletion, why string) {
	if _, taken := d.state.(resumed); !taken {
		m.groups.ScaleDownFailed(t.Now, d.group)
	}
	m.endTogether(t, name, why, m.giveUp)
}

// endTogether ends a deletion by calling end, and with it all of an atomic group that the provider
// wasn't asked to carry out yet, and those of nodes whose pods were to leave together with its own and
// haven't been asked to, or only got successors.
// Nodes that go together or not at all must not be split by one that fails.
func (m *Machine) endTogether(t *lifecycle.Turn, name, why string, end func(*lifecycle.Turn, string, *deletion, string)) {
	d := m.deletions[name]
	end(t, name, d, why)
	if d.with != "" {
		for _, other := range m.names(func(o *deletion) bool { return o.with == d.with && (o.recallable() || o.surging()) }) {
			vain := m.deletions[other].evicted() // pods of lower tiers, or other members for their successors
			end(t, other, m.deletions[other], "node "+name+" stays, whose pods leave together with its own: "+why)
			if vain {
				m.candidates.DrainedInVain(other, t.Now)
			}
		}
	}
	if !atomic(t.State.Group(d.group)) {
		return
	}
	for _, other := range m.names(func(o *deletion) bool { return o.group == d.group && o.planned() }) {
		end(t, other, m.deletions[other], "node "+name+" of its group, which is removed as a whole or not at all, stays: "+why)
	}
}
