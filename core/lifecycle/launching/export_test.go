package launching

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Describe returns lines about the windows and what goes on, for the scripts.
func (m *Machine) Describe() (out []string) {
	if m.cluster != nil {
		out = append(out, m.cluster.describe("cluster", sum(m.pulling)))
	}
	for _, id := range slices.Sorted(maps.Keys(m.groups)) {
		out = append(out, m.groups[id].describe("group "+id, m.pulling[id]))
	}
	for _, id := range slices.Sorted(maps.Keys(m.took)) {
		t := m.Times(id)
		out = append(out, fmt.Sprintf("launches of %s: %s in the median of %d, %s for nine tenths", id, t.Median, t.Launches, t.P90))
	}
	for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
		if n := m.nodes[name]; n.state != usable {
			out = append(out, fmt.Sprintf("node %s of %s: %s", name, n.group, n.state))
		}
	}
	if len(m.waiting.full) > 0 {
		out = append(out, "no room for "+strings.Join(m.waiting.full, ", "))
	}
	return out
}
