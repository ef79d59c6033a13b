package launching

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/berthproject/berth/core/step"
)

// This file is what people are told of launches: how long those of a group took, and which
// are under way. No limit reads it. It is kept under any limit, and ends with the process.

// timesRemembered is of how many launches of a group the times are remembered, the latest.
const timesRemembered = 64

// Times are how long the latest launches of a group took, from the order until the node was
// usable. The zero value says that none has been seen.
type Times struct {
	Launches int // how many these are the times of
	// Median and P90 are times within which one half and nine tenths of them were usable.
	Median, P90 time.Duration
}

// remember takes how long a launch of a group took.
func (m *Machine) remember(group string, took time.Duration) {
	list := append(m.took[group], took)
	m.took[group] = list[max(len(list)-timesRemembered, 0):]
}

// reached records that a launch has reached a stage, if it is known when it was ordered.
func (m *Machine) reached(now time.Time, n *node, stage step.LaunchedUntil) {
	if !n.ordered.IsZero() {
		m.stages = append(m.stages, step.LaunchStage{Group: n.group, Stage: stage, Took: now.Sub(n.ordered)})
	}
}

// Windows are how many nodes of the cluster, or of a group, may be launching and pulling at a time.
type Windows struct {
	Group              string  // "" for the cluster
	Launching, Pulling float64 // 0 for no limit
}

// Windows returns the limits as they are: that of the cluster first, if there is one, then those of
// groups, in the order given.
func (m *Machine) Windows(groups []string) (out []Windows) {
	add := func(group string, limit Limit, s *scope) {
		switch {
		case s != nil:
			out = append(out, Windows{group, s.launch.size, s.pull.size})
		case limit > 0:
			out = append(out, Windows{Group: group, Launching: float64(limit)})
		}
	}
	add("", m.cfg.Cluster, m.cluster)
	for _, id := range groups {
		add(id, m.cfg.Group, m.groups[id])
	}
	return out
}

// Times returns how long the latest launches of a group took.
func (m *Machine) Times(group string) Times {
	sorted := slices.Sorted(slices.Values(m.took[group]))
	if len(sorted) == 0 {
		return Times{}
	}
	within := func(percent int) time.Duration { return sorted[(len(sorted)*percent+99)/100-1] }
	return Times{Launches: len(sorted), Median: within(50), P90: within(90)}
}

// Launch is a number of nodes that were ordered at a time and aren't usable.
type Launch struct {
	Node    string // or the ID of its instance; "" for those that the provider doesn't list
	Nodes   int    // 1 unless Node is ""
	Ordered time.Time
}

// Underway returns the launches of a group, the oldest order first, in O(nodes). Nodes of
// which it isn't known when they were ordered come first; nodes that were ordered and never
// made are among them for an hour.
func (m *Machine) Underway(group string) []Launch {
	var out []Launch
	for name, n := range m.nodes {
		if n.group == group && n.state == launching {
			out = append(out, Launch{Node: name, Nodes: 1, Ordered: n.ordered})
		}
	}
	for _, o := range m.unlisted[group] {
		out = append(out, Launch{Nodes: o.nodes, Ordered: o.at})
	}
	slices.SortFunc(out, func(a, b Launch) int {
		return cmp.Or(a.Ordered.Compare(b.Ordered), strings.Compare(a.Node, b.Node))
	})
	return out
}
