package nodedeletion

// This file enters and drops deletions, and changes their states and groups. What must be true:
// planned has, by group, how many deletions are planned, and no group with none.

import (
	"maps"
	"slices"

	"github.com/berthproject/berth/core/lifecycle"
)

// enter has a node on its way out, under its name, or aside, in place of what was there.
func (m *Machine) enter(name string, d *deletion) {
	m.drop(name)
	m.deletions[name] = d
	m.count(d, +1)
}

// drop forgets a node.
func (m *Machine) drop(name string) {
	if d := m.deletions[name]; d != nil {
		m.count(d, -1)
		delete(m.deletions, name)
	}
}

// set gives a deletion another state. What changes within a state is assigned.
func (m *Machine) set(d *deletion, s state) {
	m.count(d, -1)
	d.state = s
	m.count(d, +1)
}

// setGroup gives a deletion another group.
func (m *Machine) setGroup(d *deletion, group string) {
	m.count(d, -1)
	d.group = group
	m.count(d, +1)
}

// count adds a deletion to the planned ones of its group if it is one, or takes it away.
func (m *Machine) count(d *deletion, delta int) {
	if !d.planned() {
		return
	}
	if m.planned[d.group] += delta; m.planned[d.group] == 0 {
		delete(m.planned, d.group)
	}
}

// Planned returns how many nodes of a group are on their way out that its assumed target
// still includes.
func (m *Machine) Planned(group string) int { return m.planned[group] }

// toGather records that a node of a group was batched: gather is due for the group.
func (m *Machine) toGather(group string) { m.gathering[group] = true }

// gatherAll gathers the groups of which nodes were batched since it was called last.
func (m *Machine) gatherAll(t *lifecycle.Turn) {
	for _, group := range slices.Sorted(maps.Keys(m.gathering)) {
		m.gather(t, group)
	}
	clear(m.gathering)
}
