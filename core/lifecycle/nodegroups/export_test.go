package nodegroups

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
)

// Remembers returns what the machine remembers: lines for each group and instance.
func (m *Machine) Remembers() (out []string) {
	for _, id := range slices.Sorted(maps.Keys(m.groups)) {
		g := m.groups[id]
		if g.unanswered != 0 {
			out = append(out, fmt.Sprintf("group %s: %d nodes ordered without an outcome", id, g.unanswered))
		}
		if g.maxOrder != 0 {
			out = append(out, fmt.Sprintf("group %s: an order has at most %d nodes", id, g.maxOrder))
		}
		if len(g.missing) > 0 {
			out = append(out, fmt.Sprintf("group %s: short of instances", id))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.instances.byID)) {
		x := m.instances.get(id)
		out = append(out, fmt.Sprintf("instance %s of %s: %s", id, x.group, x.state))
	}
	return out
}

// PassesOver says which listed instances the next GroupsSet would take for registered, by what
// it remembers of the last, though they aren't; and how many it would pass over.
func (m *Machine) PassesOver(state *cluster.State, g *nodegroup.Group) (wrong []string, passed int) {
	ahead := *m
	ahead.lists = maps.Clone(m.lists)
	if ahead.nodesDiffer(state) {
		clear(ahead.lists)
	}
	looked := map[string]bool{}
	for inst := range ahead.maybeUnregistered(g) {
		looked[inst.ID] = true
	}
	for i := range g.Instances {
		if inst := &g.Instances[i]; !looked[inst.ID] {
			passed++
			if !isRegistered(state, inst) || m.instances.get(inst.ID) != nil {
				wrong = append(wrong, inst.ID)
			}
		}
	}
	return wrong, passed
}

// Groups returns how many groups are remembered.
func (m *Machine) Groups() int { return len(m.groups) }

// Examined returns how many nodes and groups were looked at in all to count what is coming.
func (m *Machine) Examined() int { return m.coming.looked }

// ComingDiffers says how the counts of what is coming differ from what counting anew yields.
func (m *Machine) ComingDiffers(t *lifecycle.Turn) string {
	kept := m.Coming(t)
	again := *m
	again.coming, again.instances.changed = comingNodes{}, nil
	anew := again.Coming(t)
	for _, g := range t.State.Groups() {
		if kept.Of(g.ID) != anew.Of(g.ID) {
			return fmt.Sprintf("%d nodes of group %s are coming, and %d by counting anew", kept.Of(g.ID), g.ID, anew.Of(g.ID))
		}
	}
	if kept.All() != anew.All() {
		return fmt.Sprintf("%d nodes of all groups are coming, and %d by counting anew", kept.All(), anew.All())
	}
	return ""
}
