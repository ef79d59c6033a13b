package nodedeletion

// This file checks what must be true of node deletions between two Steps. Tests call it
// after every one.

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// Invariants checks what the types of the states leave open.
func (m *Machine) Invariants() []string {
	var out []string
	wrong := func(name string, d *deletion, format string, args ...any) {
		out = append(out, fmt.Sprintf("deletion of node %s (%s): %s", name, d.state, fmt.Sprintf(format, args...)))
	}
	for _, name := range slices.Sorted(maps.Keys(m.deletions)) {
		d := m.deletions[name]
		if d.taint.Key != autoscaler.ToBeDeletedTaint {
			wrong(name, d, "its taint is %q", d.taint.Key)
		}
		if s, ok := d.asked(); ok && s.node == nil {
			wrong(name, d, "what the node looked like is not known")
		}
		if last := d.outOfState(); last != nil && last.Name != name && aside(last.Name, d.instance) != name {
			wrong(name, d, "it remembers node %s", last.Name)
		}
		if d.instance != "" && (d.planned() || d.stays()) {
			wrong(name, d, "the provider was asked to delete its instance %s", d.instance)
		}
		if s, ok := d.state.(deleted); ok && s.listed && s.shown == nil {
			wrong(name, d, "its instance was looked for though the node isn't shown")
		}
	}
	planned := map[string]int{}
	for _, d := range m.deletions {
		if d.planned() {
			planned[d.group]++
		}
	}
	if !maps.Equal(planned, m.planned) {
		out = append(out, fmt.Sprintf("planned deletions by group are %v, counted as %v", planned, m.planned))
	}
	return out
}

// InvariantsIn checks that each node on its way out is in the cluster state as the table
// in doc.go says.
func (m *Machine) InvariantsIn(state *cluster.State) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m.deletions)) {
		d, n := m.deletions[name], state.NodeByName(name)
		has := "is in the state, tainted"
		switch {
		case n == nil:
			has = "is out of the state"
		case !n.HasTaint(autoscaler.ToBeDeletedTaint):
			has = "is in the state, clean"
		}
		if n != nil && d.cordon && d.planned() && !n.Object.Spec.Unschedulable {
			has += ", and schedulable"
		}
		if n != nil && d.stays() && n.Object.Annotations[autoscaler.RemovalNote] != "" {
			has += ", with its note"
		}
		want := "is in the state, tainted"
		switch d.state.(type) {
		case deleting, inDoubt, unanswered, deleted:
			want = "is out of the state"
		case untainting, untaintFailed:
			want = "is in the state, clean"
		}
		if has != want {
			out = append(out, fmt.Sprintf("deletion of node %s (%s): the node %s; it should be so that it %s", name, d.state, has, want))
		}
	}
	return out
}
