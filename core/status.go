package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// GroupStatus is how a node group stands.
type GroupStatus struct {
	cluster.NodeGroup
	Registered, Ready, Deleting int // nodes in the API
}

// Groups returns how the node groups stand, by ID.
func (c *Core) Groups() []GroupStatus {
	at := map[string]int{}
	var out []GroupStatus
	for i, g := range c.state.Groups() {
		at[g.ID] = i
		out = append(out, GroupStatus{NodeGroup: *g})
	}
	if c.cfg.Autoscale != nil {
		c.scale.deletions.Asked(func(group string) {
			if i, ok := at[group]; ok {
				out[i].Registered++ // out of the state, and not gone yet
				out[i].Deleting++
			}
		})
	}
	c.state.Nodes(func(n *cluster.Node) {
		i, ok := at[n.Group]
		if !ok {
			return
		}
		out[i].Registered++
		switch {
		case n.HasTaint(autoscaler.ToBeDeletedTaint):
			out[i].Deleting++
		case n.Ready():
			out[i].Ready++
		}
	})
	return out
}

// Unsettled says what the core still waits for, or holds on to: in a world at
// rest it must be nothing.
func (c *Core) Unsettled() []string {
	var out []string
	for _, uid := range slices.Sorted(maps.Keys(c.pods)) {
		if p := c.pods[uid]; p.assumed != "" {
			out = append(out, fmt.Sprintf("pod %s is assumed on %s, and nothing has come of it", uid, p.assumed))
		}
	}
	out = append(out, c.unsettledPreemptions()...)
	out = append(out, c.nomination.Unsettled()...)
	out = append(out, c.reporting.Unsettled()...)
	for _, key := range slices.SortedFunc(maps.Keys(c.assumed), func(a, b objectKey) int { return strings.Compare(a.namespace+"/"+a.name, b.namespace+"/"+b.name) }) {
		out = append(out, fmt.Sprintf("%s/%s is assumed to be reserved, and nothing has come of it", key.namespace, key.name))
	}
	for _, m := range c.scale.machines() {
		out = append(out, m.Unsettled()...)
	}
	return out
}

// Invariants says, a line each, what must be true of the core's own records and isn't:
// each is a defect of Berth's. Tests call it after every Step.
func (c *Core) Invariants() []string {
	out := append(c.queue.Invariants(), c.nomination.Invariants()...)
	out = append(out, c.nomination.InvariantsIn(c.state)...)
	out = append(append(out, c.reporting.Invariants()...), c.reporting.InvariantsIn(c.state)...)
	for _, m := range c.scale.machines() {
		out = append(out, m.Invariants()...)
	}
	if c.scale.deletions != nil {
		out = append(out, c.scale.deletions.InvariantsIn(c.state)...)
	}
	return out
}
