package launching

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Describe writes the windows and what goes on, for the scripts.
func (m *Machine) Describe() string {
	var out strings.Builder
	if m.cluster != nil {
		fmt.Fprintln(&out, m.cluster.describe("cluster", sum(m.pulling)))
	}
	for _, id := range slices.Sorted(maps.Keys(m.groups)) {
		fmt.Fprintln(&out, m.groups[id].describe("group "+id, m.pulling[id]))
	}
	m.describeTimes(&out)
	for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
		if n := m.nodes[name]; n.state != usable {
			fmt.Fprintf(&out, "node %s of %s: %s\n", name, n.group, n.state)
		}
	}
	if len(m.waiting.full) > 0 {
		fmt.Fprintf(&out, "no room for %s\n", strings.Join(m.waiting.full, ", "))
	}
	return out.String()
}

// describeTimes writes the times of all groups that have any.
func (m *Machine) describeTimes(out *strings.Builder) {
	for _, id := range slices.Sorted(maps.Keys(m.took)) {
		t := m.Times(id)
		fmt.Fprintf(out, "launches of %s: %s in the median of %d, %s for nine tenths\n", id, t.Median, t.Launches, t.P90)
	}
}
