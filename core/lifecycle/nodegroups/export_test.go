package nodegroups

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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
		if !g.missingSince.IsZero() {
			fmt.Fprintf(&out, "group %s: short of instances\n", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.instances)) {
		x := m.instances[id]
		fmt.Fprintf(&out, "instance %s of %s: %s\n", id, x.group, x.state)
	}
	return out.String()
}
