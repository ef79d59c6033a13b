package nodegroups

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
)

// Remembers writes what the machine remembers, a line for each group and instance, for
// the scripts.
func (m *Machine) Remembers() string {
	var out strings.Builder
	for _, id := range slices.Sorted(maps.Keys(m.groups)) {
		g := m.groups[id]
		if g.unanswered != 0 {
			fmt.Fprintf(&out, "group %s: %d nodes ordered without an outcome\n", id, g.unanswered)
		}
		if g.maxOrder != 0 {
			fmt.Fprintf(&out, "group %s: an order has at most %d nodes\n", id, g.maxOrder)
		}
		if len(g.missing) > 0 {
			fmt.Fprintf(&out, "group %s: short of instances\n", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.instances)) {
		x := m.instances[id]
		fmt.Fprintf(&out, "instance %s of %s: %s\n", id, x.group, x.state)
	}
	return out.String()
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
			if !isRegistered(state, inst) || m.instances[inst.ID] != nil {
				wrong = append(wrong, inst.ID)
			}
		}
	}
	return wrong, passed
}
