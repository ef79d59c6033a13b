package core

import (
	"fmt"
	"time"

	"github.com/berthproject/berth/core/step"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
)

// machines are those that the provider has and the API doesn't show as nodes.
// One that doesn't become a node in time, or fails, is removed, and its group
// backs off; as Cluster Autoscaler does with unregistered nodes.
type machines struct {
	byID    map[string]*machine
	missing map[string]time.Time // by group, since when it has fewer machines than it was asked for
}

type machine struct {
	group   string
	since   time.Time // when it was first seen, or when it was removed
	node    string    // its node's name, when it became one while being removed
	removal removal
	stuck   bool // its group's minimum keeps it
}

type removal uint8

const (
	notRemoved removal = iota
	beingRemoved
	doubted // perhaps it was removed and only the answer was lost; the next list tells
	removed // remembered for a while: its node may show up late
)

// removedKept is how long a removed machine is remembered.
const removedKept = time.Hour

// watchMachines looks at what the provider says of its machines.
func (c *Core) watchMachines(groups []nodegroup.Group, r *step.Ready) {
	registered := map[string]bool{}
	c.state.Nodes(func(n *cluster.Node) {
		registered[n.Name] = true
		if id := n.Object.Spec.ProviderID; id != "" {
			registered[id] = true
		}
	})
	for name, d := range c.scale.deletions {
		if d.out() && d.info != nil {
			registered[name], registered[d.info.Object.Spec.ProviderID] = true, true
		}
	}
	m := &c.scale.machines
	listed := map[string]bool{}
	for i := range groups {
		g := &groups[i]
		if g.Instances == nil {
			continue
		}
		for k := range g.Instances {
			inst := &g.Instances[k]
			listed[inst.ID] = true
			if inst.ID == "" {
				continue // it can't be told from others
			}
			if registered[inst.ID] || registered[inst.Node] {
				if x := m.byID[inst.ID]; x != nil && (x.removal == notRemoved || x.removal == doubted) {
					delete(m.byID, inst.ID)
				}
				continue
			}
			c.watchMachine(g.ID, inst, r)
		}
		c.watchMissing(g, r)
	}
	for id, x := range m.byID {
		if !listed[id] && x.removal == doubted {
			x.removal, x.since = removed, c.now
		}
		if !listed[id] && (x.removal != removed || c.now.Sub(x.since) > removedKept) {
			delete(m.byID, id)
		}
	}
}

// going counts a group's machines that are being removed.
func (m *machines) going(group string) (n int) {
	for _, x := range m.byID {
		if x.group == group && x.removal == beingRemoved {
			n++
		}
	}
	return n
}

// stuck counts a group's machines that are late and that its minimum keeps.
func (m *machines) stuck(group string) (n int) {
	for _, x := range m.byID {
		if x.group == group && x.stuck && x.removal == notRemoved {
			n++
		}
	}
	return n
}

func (c *Core) watchMachine(group string, inst *nodegroup.Instance, r *step.Ready) {
	m := &c.scale.machines
	x := m.byID[inst.ID]
	if x == nil {
		x = &machine{group: group, since: c.now}
		m.byID[inst.ID] = x
	}
	if x.removal == doubted {
		x.removal = notRemoved // it exists, and is tried again
	}
	why := inst.Failed
	if limit := c.cfg.Autoscale.MaxProvisionTime; why == "" && c.now.Sub(x.since) >= limit {
		why = fmt.Sprintf("not registered within %s", limit)
	}
	g := c.state.Group(group)
	if why == "" || x.removal != notRemoved || g == nil {
		return
	}
	if !x.stuck {
		c.failed(group, why, r)
	}
	// As in Cluster Autoscaler the minimum keeps a machine that may still come,
	// but not one that has failed.
	x.stuck = inst.Failed == "" && g.Target-c.going()[group]-m.going(group) <= g.Min && !c.cfg.Autoscale.ForceDeleteUnregistered
	if x.stuck {
		return
	}
	x.removal = beingRemoved
	c.decided(r, step.Decision{Kind: step.MachineRemoved, Node: inst.Node, Group: group, Nodes: 1, Reason: inst.ID + ": " + why})
	r.NodeDeletions = append(r.NodeDeletions, step.NodeDeletion{Group: group, Node: inst.Node, Instance: inst.ID})
}

// watchMissing gives up machines that were asked for and never made.
func (c *Core) watchMissing(g *nodegroup.Group, r *step.Ready) {
	m := &c.scale.machines
	missing := g.Target - len(g.Instances)
	if missing <= 0 {
		delete(m.missing, g.ID)
		return
	}
	since, ok := m.missing[g.ID]
	if !ok {
		since = c.now
		m.missing[g.ID] = since
	}
	if c.now.Sub(since) < c.cfg.Autoscale.MaxProvisionTime {
		return
	}
	delete(m.missing, g.ID)
	why := fmt.Sprintf("%d of %d machines don't exist after %s", missing, g.Target, c.cfg.Autoscale.MaxProvisionTime)
	c.failed(g.ID, why, r)
	// As in Cluster Autoscaler not even the minimum keeps what doesn't exist.
	c.decided(r, step.Decision{Kind: step.TargetLowered, Group: g.ID, Nodes: missing, Reason: why})
	r.TargetDecreases = append(r.TargetDecreases, step.TargetDecrease{Group: g.ID, Nodes: missing})
}

// failed lets a group back off, unless it does already.
func (c *Core) failed(group, why string, r *step.Ready) {
	if c.scale.backoff.Active(group, c.now) {
		return
	}
	c.decided(r, step.Decision{Kind: step.ScaleUpFailed, Group: group, Reason: why})
	c.scale.backoff.Fail(group, c.now)
	c.scale.shrinkFrom[group] = c.now.Add(c.cfg.Autoscale.DelayAfterFailure)
	c.retarget(group, 0)
}

// removedMachine returns the removal of a node that is shown for a machine
// which is being removed, or was: nothing must be placed there. Nil for others.
func (c *Core) removedMachine(info *cluster.NodeInfo) *deletion {
	x := c.scale.machines.byID[info.Object.Spec.ProviderID]
	if info.Object.Spec.ProviderID == "" || x == nil || x.removal == notRemoved {
		return nil
	}
	x.node = info.Name
	d := &deletion{phase: deleting, since: c.now, group: x.group, taint: c.deletionTaint(), why: "its machine was removed"}
	switch x.removal {
	case removed:
		d.phase = departed
	case doubted:
		d.phase = doubtful
	}
	return d
}

// machineDone takes the outcome of a machine's removal and tells whether it
// was one.
func (c *Core) machineDone(in step.NodeDeletionDone, r *step.Ready) bool {
	x := c.scale.machines.byID[in.Instance]
	if in.Instance == "" || x == nil || x.removal != beingRemoved {
		return false
	}
	if in.Err == nil {
		x.removal, x.since = removed, c.now
	} else {
		x.removal = doubted
	}
	if d := c.scale.deletions[x.node]; x.node != "" && d != nil && d.phase == deleting {
		c.deleted(x.node, in.Err, r)
	}
	if in.Err == nil {
		c.retarget(x.group, -1)
	}
	return true
}
