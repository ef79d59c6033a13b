package launching

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// describe writes a line about the windows of a scope, and how many of its nodes pull.
func (s *scope) describe(of string, pulling int) string {
	return fmt.Sprintf("%s: windows %.1f launching, %.1f pulling; %d pulling, %s on average",
		of, s.launch.size, s.pull.size, pulling, s.pullTime.Round(time.Second))
}

// DescribeControl says how launches of a group are limited, a line for the limit of the
// cluster and one for that of the group, for people; none without a limit.
func (m *Machine) DescribeControl(id string) []string {
	var out []string
	add := func(of string, limit Limit, s *scope, pulling int) {
		switch {
		case s != nil:
			out = append(out, s.describe(of, pulling))
		case limit > 0:
			out = append(out, fmt.Sprintf("%s: at most %d nodes launching at a time", of, limit))
		}
	}
	add("cluster", m.cfg.Cluster, m.cluster, sum(m.pulling))
	add("group "+id, m.cfg.Group, m.groups[id], m.pulling[id])
	if slices.Contains(m.waiting.full, id) {
		out = append(out, "a plan was throttled: no more launches were allowed")
	}
	return out
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
