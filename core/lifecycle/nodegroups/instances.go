package nodegroups

import (
	"fmt"
	"time"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// instance is an instance that the provider has and the API doesn't show as a node, as
// far as that is known. One that doesn't become a node in time, or fails, is deleted,
// and its group backs off; as Cluster Autoscaler does with unregistered nodes.
type instance struct {
	group string
	state instanceState
	// since is when it was first seen in the provider's list; of a deleted one, when
	// it was deleted.
	since time.Time
	// node is the name of the node that was shown for it while it was being deleted or
	// after; "" for none.
	node string
}

// instanceState is a row of the second table in doc.go.
type instanceState uint8

const (
	coming instanceState = iota
	late
	deleting
	inDoubt
	deleted
)

func (s instanceState) String() string {
	return [...]string{"coming", "late", "deleting", "in doubt", "deleted"}[s]
}

// call returns how far the call is that deletes the instance.
func (s instanceState) call() lifecycle.CallState {
	return [...]lifecycle.CallState{lifecycle.NotCalled, lifecycle.NotCalled, lifecycle.Called, lifecycle.InDoubt, lifecycle.Done}[s]
}

// deletedKept is how long a deleted instance is remembered: its node may be shown late.
const deletedKept = time.Hour

// watchInstances takes what the provider lists. It costs O(nodes + instances).
func (m *Machine) watchInstances(t *lifecycle.Turn, groups []nodegroup.Group) {
	registered := m.registered(t.State)
	listed := map[string]bool{}
	for i := range groups {
		g := &groups[i]
		if g.Instances == nil {
			continue // the provider doesn't list instances
		}
		for k := range g.Instances {
			inst := &g.Instances[k]
			listed[inst.ID] = true
			switch {
			case inst.ID == "": // it can't be told from others
			case registered[inst.ID] || registered[inst.Node]:
				m.forgetRegistered(inst.ID)
			default:
				m.watchInstance(t, g.ID, inst)
			}
		}
		m.watchMissing(t, g)
	}
	for id, x := range m.instances {
		if listed[id] {
			continue
		}
		if x.state == inDoubt {
			x.state, x.since = deleted, t.Now
		}
		if x.state != deleted || t.Now.Sub(x.since) > deletedKept {
			delete(m.instances, id)
		}
	}
}

// registered returns the names and provider IDs of the nodes that the API shows, those
// on their way out included.
func (m *Machine) registered(state *cluster.State) map[string]bool {
	out := map[string]bool{}
	add := func(n *cluster.NodeInfo) {
		out[n.Name] = true
		if id := n.Object.Spec.ProviderID; id != "" {
			out[id] = true
		}
	}
	state.Nodes(func(n *cluster.Node) { add(n.NodeInfo) })
	m.deletions.OutOfState(add)
	return out
}

// forgetRegistered forgets an instance that has become a node, unless it is being
// deleted, or was: then its node has to be told apart from others.
func (m *Machine) forgetRegistered(id string) {
	if x := m.instances[id]; x != nil && x.state != deleting && x.state != deleted {
		delete(m.instances, id)
	}
}

// watchInstance takes a listed instance that isn't registered.
func (m *Machine) watchInstance(t *lifecycle.Turn, group string, inst *nodegroup.Instance) {
	x := m.instances[inst.ID]
	if x == nil {
		x = &instance{group: group, since: t.Now}
		m.instances[inst.ID] = x
	}
	if x.state == inDoubt {
		x.state, x.node = coming, "" // the deletion failed, and is tried again below
	}
	why := inst.Failed
	if why == "" && t.Now.Sub(x.since) >= m.cfg.MaxProvisionTime {
		why = fmt.Sprintf("not registered within %s", m.cfg.MaxProvisionTime)
	}
	if why == "" || x.state != coming && x.state != late {
		return
	}
	if x.state == coming {
		m.fail(t, group, why)
	}
	// As in Cluster Autoscaler the minimum keeps an instance that may still come, but
	// not one that has failed.
	if inst.Failed == "" && m.atMinimum(t.State.Group(group)) && !m.cfg.ForceDeleteUnregistered {
		x.state = late
		return
	}
	x.state = deleting
	t.Decide(step.Decision{Kind: step.MachineRemoved, Node: inst.Node, Group: group, Nodes: 1, Reason: inst.ID + ": " + why})
	t.Ready.NodeDeletions = append(t.Ready.NodeDeletions, step.NodeDeletion{Group: group, Node: inst.Node, Instance: inst.ID})
}

// atMinimum tells whether a group can't lose one node more than are on their way out.
func (m *Machine) atMinimum(g *cluster.NodeGroup) bool {
	going := m.deletions.Planned(g.ID)
	for _, x := range m.instances {
		if x.group == g.ID && x.state == deleting {
			going++
		}
	}
	return g.Target-going <= g.Min
}

// late counts a group's instances that are late and kept by its minimum.
func (m *Machine) late(group string) (n int) {
	for _, x := range m.instances {
		if x.group == group && x.state == late {
			n++
		}
	}
	return n
}

// watchMissing gives up nodes that the provider was asked for and has made no instances
// for.
func (m *Machine) watchMissing(t *lifecycle.Turn, g *nodegroup.Group) {
	known := m.group(g.ID)
	missing := g.Target - len(g.Instances)
	if missing <= 0 {
		known.missingSince = time.Time{}
		return
	}
	if known.missingSince.IsZero() {
		known.missingSince = t.Now
	}
	if t.Now.Sub(known.missingSince) < m.cfg.MaxProvisionTime {
		return
	}
	known.missingSince = time.Time{}
	why := fmt.Sprintf("%d of %d machines don't exist after %s", missing, g.Target, m.cfg.MaxProvisionTime)
	m.fail(t, g.ID, why)
	// As in Cluster Autoscaler not even the minimum keeps what doesn't exist.
	t.Decide(step.Decision{Kind: step.TargetLowered, Group: g.ID, Nodes: missing, Reason: why})
	t.Ready.TargetDecreases = append(t.Ready.TargetDecreases, step.TargetDecrease{Group: g.ID, Nodes: missing})
}

// InstanceDeletion says of which group an instance is, by its provider ID, and how far
// the deletion is that was asked for because it had not become a node; NotCalled for
// any other instance. node is the node that is now shown for it: it is remembered, and
// shares the outcome.
func (m *Machine) InstanceDeletion(providerID, node string) (group string, state lifecycle.CallState) {
	x := m.instances[providerID]
	if providerID == "" || x == nil || x.state.call() == lifecycle.NotCalled {
		return "", lifecycle.NotCalled
	}
	x.node = node
	return x.group, x.state.call()
}

// InstanceDeletionDone takes the outcome of a NodeDeletion if it was asked for by this
// machine, which ok says. node is the node that was shown for the instance meanwhile,
// "" for none.
func (m *Machine) InstanceDeletionDone(t *lifecycle.Turn, in step.NodeDeletionDone) (node string, ok bool) {
	x := m.instances[in.Instance]
	if in.Instance == "" || x == nil || x.state != deleting {
		return "", false
	}
	if in.Err == nil {
		x.state, x.since = deleted, t.Now
		m.Retarget(t, x.group, -1)
	} else {
		x.state = inDoubt
	}
	return x.node, true
}
