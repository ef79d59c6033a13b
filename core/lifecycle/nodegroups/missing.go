package nodegroups

import (
	"fmt"
	"time"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// This file gives up nodes that the provider was asked for and has made no instances for. What must
// hold: nothing is given up within the provisioning time of its own order, whatever was missing
// before it. (Cluster Autoscaler starts its clock anew whenever target or instances change, so that
// a group which keeps growing never gives anything up.)

// missing is how many nodes of a group have no instance, the longest missing first.
type missing []missingNodes

// missingNodes are nodes that have been missing since the same list.
type missingNodes struct {
	nodes int
	since time.Time
}

// nodes returns how many are missing.
func (q missing) nodes() (n int) {
	for _, x := range q {
		n += x.nodes
	}
	return n
}

// forget takes out so many nodes, the longest missing first.
func (q *missing) forget(nodes int) {
	for nodes > 0 && len(*q) > 0 {
		first := &(*q)[0]
		took := min(nodes, first.nodes)
		nodes -= took
		if first.nodes -= took; first.nodes == 0 {
			*q = (*q)[1:]
		}
	}
}

// set makes the number of missing nodes what a list shows in which so many instances are new. An
// instance that comes is taken for the one that was ordered first, and so is one that is given up.
func (q *missing) set(now time.Time, nodes, arrived int) {
	q.forget(arrived)
	switch was := q.nodes(); {
	case nodes > was:
		*q = append(*q, missingNodes{nodes - was, now})
	case nodes < was:
		q.forget(was - max(nodes, 0))
	}
}

// since returns how many have been missing since a time or longer.
func (q missing) since(at time.Time) (n int) {
	for _, x := range q {
		if !x.since.After(at) {
			n += x.nodes
		}
	}
	return n
}

// watchMissing gives up nodes that the provider was asked for and has made no instances for within
// the group's provisioning time.
func (m *Machine) watchMissing(t *lifecycle.Turn, g *nodegroup.Group) {
	known := m.group(g.ID)
	q := &known.missing
	q.set(t.Now, g.Target-len(g.Instances), arrivals(known.listed, g.Instances))
	known.listed = g.Instances
	limit := m.ProvisionTime(t.State.Group(g.ID))
	late := q.since(t.Now.Add(-limit))
	if late == 0 {
		return
	}
	q.forget(late)
	why := fmt.Sprintf("%d of %d instances don't exist after %s", late, g.Target, limit)
	m.fail(t, g.ID, nodegroup.OtherError, nodegroup.CodeTimeout, why)
	failed(t, g.ID, late, nodegroup.CodeTimeout, why)
	if m.cfg.ReadOnly {
		return
	}
	// As in Cluster Autoscaler not even the minimum keeps what doesn't exist.
	t.Decide(step.Decision{Kind: step.TargetLowered, Group: g.ID, Nodes: late, Reason: why})
	t.Ready.TargetDecreases = append(t.Ready.TargetDecreases, step.TargetDecrease{Group: g.ID, Nodes: late})
}

// arrivals returns how many instances of a list weren't in the last one.
func arrivals(last, list []nodegroup.Instance) (n int) {
	if sameInstances(last, list) {
		return 0
	}
	before := make(map[string]bool, len(last))
	for i := range last {
		before[last[i].ID] = true
	}
	for i := range list {
		if !before[list[i].ID] {
			n++
		}
	}
	return n
}
