package launching

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Describe writes the windows and what goes on, for people and tests.
func (m *Machine) Describe() string {
	var out strings.Builder
	describe := func(of string, s *scope, pulling int) {
		fmt.Fprintf(&out, "%s: windows %.1f launching, %.1f pulling; %d pull, in %s on average\n",
			of, s.launch.size, s.pull.size, pulling, s.pullTime.Round(time.Second))
	}
	if m.cluster != nil {
		describe("cluster", m.cluster, sum(m.pulling))
	}
	for _, id := range slices.Sorted(maps.Keys(m.groups)) {
		describe("group "+id, m.groups[id], m.pulling[id])
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

// Invariants checks windows and counts.
func (m *Machine) Invariants() []string {
	var out []string
	check := func(of string, s *scope) {
		if min(s.launch.size, s.pull.size) < leastWindow || s.failed < 0 || s.passed < 0 {
			out = append(out, fmt.Sprintf("launch control of %s: windows %.1f and %.1f of at least %d, outcomes %.1f and %.1f of at least 0", of, s.launch.size, s.pull.size, leastWindow, s.failed, s.passed))
		}
	}
	if m.cluster != nil {
		check("the cluster", m.cluster)
	}
	for _, id := range slices.Sorted(maps.Keys(m.groups)) {
		check("group "+id, m.groups[id])
	}
	counted := map[string]int{}
	for _, n := range m.nodes {
		if n.state == pulling {
			counted[n.group]++
		}
	}
	if !maps.Equal(counted, m.pulling) {
		out = append(out, fmt.Sprintf("launch control counts %v nodes that pull, and follows %v", m.pulling, counted))
	}
	for _, id := range slices.Sorted(maps.Keys(m.unlisted)) {
		for _, o := range m.unlisted[id] {
			if o.nodes < 1 {
				out = append(out, fmt.Sprintf("launch control of group %s: an order of %d nodes isn't listed; it needs some", id, o.nodes))
			}
		}
	}
	return out
}
