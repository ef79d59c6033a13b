package nodegroups

import (
	"cmp"
	"fmt"
	"slices"
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
	node  string // its node's name, "" when the provider doesn't know
	state instanceState
	class nodegroup.ErrorClass // of the failure for which it is deleted
	// reason is why it is deleted; "" before that.
	reason step.RemovalReason
	// since is when it was first seen in the provider's list; of a deleted one, when
	// it was deleted.
	since time.Time
	// called is when a deletion of it last ended without an answer; zero for never.
	called time.Time
	// unlisted reports that a list didn't have it since it was deleted.
	unlisted bool
}

// instanceState is a row of the second table in doc.go.
type instanceState uint8

const (
	coming instanceState = iota
	late
	deleting
	inDoubt
	unanswered
	deleted
)

func (s instanceState) String() string {
	return [...]string{"coming", "late", "deleting", "in doubt", "unanswered", "deleted"}[s]
}

// call returns how far the call is that deletes the instance.
func (s instanceState) call() lifecycle.CallState {
	return [...]lifecycle.CallState{lifecycle.NotCalled, lifecycle.NotCalled, lifecycle.Called, lifecycle.InDoubt, lifecycle.Unanswered, lifecycle.Done}[s]
}

const (
	// deletedKept is how long a deleted instance is remembered: its node may be shown late.
	deletedKept = time.Hour
	// deletedListed is how long a deleted instance may be listed still, before it is taken
	// for one that was never deleted.
	deletedListed = 2 * time.Minute
)

// watchInstances takes what the provider lists. It costs O(instances that aren't registered),
// and O(instances) of each group whose list is another, or of all when the nodes are others.
func (m *Machine) watchInstances(t *lifecycle.Turn, in *step.GroupsSet) {
	groups := in.Groups
	if m.nodesDiffer(t.State) {
		clear(m.lists)
	}
	m.findGone(t.State, groups)
	leaving := m.leaving()
	listed := map[string]bool{}
	before := len(t.Ready.ScaleUpFailures)
	defer func() { m.tellFailures(t, t.Ready.ScaleUpFailures[before:]) }()
	for i := range groups {
		g := &groups[i]
		if g.Instances == nil {
			delete(m.lists, g.ID)
			continue // the provider doesn't list instances
		}
		now := instanceList{all: g.Instances}
		for inst := range m.maybeUnregistered(g) {
			switch {
			case inst.ID == "": // it can't be told from others
				continue
			case isRegistered(t.State, inst):
				m.registeredNow(inst.ID)
				continue
			case isLeaving(leaving, inst.ID, inst.Node):
				m.forgetLeaving(inst.ID)
				listed[inst.ID] = true
			case m.ofAnotherGroup(inst.ID, g.ID):
				now.strays = append(now.strays, inst)
			default:
				m.watchInstance(t, g.ID, inst)
				listed[inst.ID] = true
			}
			now.unregistered = append(now.unregistered, inst)
		}
		m.lists[g.ID] = now
		m.watchMissing(t, g)
	}
	m.watchStrays(t, in, listed)
	m.settleAllUnlisted(t, in, listed)
}

// ofAnotherGroup reports whether an instance is known, and as one of another group.
func (m *Machine) ofAnotherGroup(id, group string) bool {
	x := m.instances.get(id)
	return x != nil && x.group != group && !x.unlisted
}

// watchStrays moves instances to the groups that list them. One that its own group lists, too, stays
// there, and so does one of whose group the list says nothing.
func (m *Machine) watchStrays(t *lifecycle.Turn, in *step.GroupsSet, listed map[string]bool) {
	for i := range in.Groups {
		group := in.Groups[i].ID
		for _, inst := range m.lists[group].strays {
			x := m.instances.get(inst.ID)
			if x == nil || listed[inst.ID] { // no x: it is a node, by what another group lists
				continue
			}
			if in.Says(x.group) {
				m.instances.move(inst.ID, x, group)
				m.launches.InstanceListed(t.Now, group, inst.ID, inst.Node)
				m.watchInstance(t, group, inst)
			}
			listed[inst.ID] = true
		}
	}
}

// settleAllUnlisted goes over the instances that a list doesn't have, by ID.
func (m *Machine) settleAllUnlisted(t *lifecycle.Turn, in *step.GroupsSet, listed map[string]bool) {
	var unlisted []string
	for id, x := range m.instances.byID {
		if !listed[id] && in.Says(x.group) && !m.mayBeListed(t.State, x.group) {
			unlisted = append(unlisted, id)
		}
	}
	slices.Sort(unlisted)
	for _, id := range unlisted {
		x := m.instances.get(id)
		m.launches.InstanceUnlisted(id, x.node)
		m.settleUnlisted(t, id, x)
		x.unlisted = x.state == deleted
		if x.state != deleted || t.Now.Sub(x.since) > deletedKept {
			m.instances.forget(id)
		}
	}
}

// settleUnlisted records that the provider doesn't list an instance any more as the answer to a call
// that failed or had none.
func (m *Machine) settleUnlisted(t *lifecycle.Turn, id string, x *instance) {
	switch x.state {
	case unanswered:
		if x.reason == step.InstanceLate {
			tellLateRemoved(t, cmp.Or(x.node, id), nil)
		}
		t.Ready.SettledDeletions = append(t.Ready.SettledDeletions, step.NodeDeletionDone{Node: x.node, Instance: id})
	case inDoubt:
	default:
		return
	}
	m.instances.become(x, deleted)
	x.since = t.Now
}

// registeredNow forgets an instance that is a node.
func (m *Machine) registeredNow(id string) {
	if x := m.instances.get(id); x != nil {
		if x.state == coming || x.state == late {
			m.launches.InstanceRegistered(x.group)
		}
		m.instances.forget(id)
	}
}

// forgetLeaving forgets an instance whose node is on its way out, unless the instance is
// being deleted, or was: then its node has to be told apart from others.
func (m *Machine) forgetLeaving(id string) {
	if x := m.instances.get(id); x != nil && x.state != deleting && x.state != deleted {
		m.instances.forget(id)
	}
}

// watchInstance takes a listed instance that isn't registered.
func (m *Machine) watchInstance(t *lifecycle.Turn, group string, inst *nodegroup.Instance) {
	x := m.instances.get(inst.ID)
	if x == nil || x.unlisted { // or another one that has its ID, as hardware has
		x = &instance{group: group, node: inst.Node, since: t.Now}
		m.launches.InstanceListed(t.Now, group, inst.ID, inst.Node)
		m.instances.follow(inst.ID, x)
	}
	if x.survived(t.Now) {
		m.instances.become(x, coming) // it exists, and is deleted below unless it may become a node
	}
	why, code, reason := inst.Failed, inst.FailureCode(), step.InstanceFailed
	if limit := m.ProvisionTime(t.State.Group(group)); why == "" && t.Now.Sub(x.since) >= limit {
		why, code, reason = fmt.Sprintf("not registered within %s", limit), nodegroup.CodeTimeout, step.InstanceLate
	}
	if why == "" || x.state != coming && x.state != late && x.state != unanswered {
		return
	}
	if x.state == coming && x.reason == "" { // otherwise it was counted before a deletion of it failed
		failed(t, group, 1, code, why)
	}
	switch {
	case inst.Class == nodegroup.OutOfResources: // it says nothing about other launches
		m.fail(t, group, inst.Class, code, why)
	case x.state != late && m.launches.LaunchFailed(t.Now, group, inst.ID, inst.Node, m.Coming(t)):
		m.fail(t, group, inst.Class, code, why)
	}
	// While a group keeps its nodes, its owner chooses which one goes for a deleted instance: it might
	// be one with pods.
	keeps := m.cfg.ReadOnly || t.State.Group(group).KeepNodes != ""
	// As in Cluster Autoscaler the minimum keeps an instance that may still come, but
	// not one that has failed.
	keeps = keeps || inst.Failed == "" && m.atMinimum(t.State.Group(group)) && !m.cfg.ForceDeleteUnregistered
	if keeps {
		if x.state != unanswered {
			m.instances.become(x, late)
		}
		return
	}
	m.instances.become(x, deleting)
	x.class, x.reason = inst.Class, reason
	t.Decide(step.Decision{Kind: step.InstanceRemoved, Node: inst.Node, Group: group, Nodes: 1, Reason: inst.ID + ": " + why})
	t.Ready.NodeDeletions = append(t.Ready.NodeDeletions, step.NodeDeletion{Group: group, Node: inst.Node, Instance: inst.ID, Reason: reason})
}

// survived reports whether a listed instance that was to be deleted is there to stay: nothing that the
// provider was asked may delete it any more.
func (x *instance) survived(now time.Time) bool {
	switch x.state {
	case inDoubt:
		return true
	case unanswered:
		return !x.mayBeDeletedLate(now)
	case deleted:
		return now.Sub(x.since) >= deletedListed
	}
	return false
}

// mayBeDeletedLate reports whether the provider may still carry out a deletion that had no answer.
func (x *instance) mayBeDeletedLate(now time.Time) bool {
	return !x.called.IsZero() && now.Sub(x.called) < lateCall
}

// comingLast returns the IDs of a group's instances that are coming, the latest first. The
// API may have shown the node of one since the provider listed it.
func (m *Machine) comingLast(state *cluster.State, group string) []string {
	leaving := m.leaving()
	var out []string
	if m.instances.count(group, coming) == 0 {
		return nil
	}
	for _, id := range m.instances.ids(group) {
		x := m.instances.get(id)
		isNode := isRegistered(state, &nodegroup.Instance{ID: id, Node: x.node}) || isLeaving(leaving, id, x.node)
		if x.state == coming && !isNode {
			out = append(out, id)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(m.instances.get(b).since.Compare(m.instances.get(a).since), cmp.Compare(b, a))
	})
	return out
}

// atMinimum reports whether a group can't lose one node more than are on their way out.
func (m *Machine) atMinimum(g *cluster.NodeGroup) bool { return m.aboveMinimum(g) <= 0 }

// aboveMinimum returns how many nodes a group can lose beside those that are on their way
// out.
func (m *Machine) aboveMinimum(g *cluster.NodeGroup) int {
	return g.Target - m.deletions.Planned(g.ID) - m.instances.count(g.ID, deleting) - g.Min
}

// ProvisionTime returns how long an instance of a group may take to become a node. g may be nil.
func (m *Machine) ProvisionTime(g *cluster.NodeGroup) time.Duration {
	if g != nil && g.Options != nil && g.Options.ProvisionTime != nil {
		return g.Options.ProvisionTime.Duration
	}
	return m.cfg.MaxProvisionTime
}

// InstanceDeletion returns the group of an instance, by its provider ID, and how far
// the deletion is that was asked for because it had not become a node; NotCalled for
// any other instance. late says that a call for it had no answer: it may still be carried out,
// whatever becomes of the next.
func (m *Machine) InstanceDeletion(providerID string) (group string, state lifecycle.CallState, late bool) {
	x := m.instances.get(providerID)
	if x == nil {
		return "", lifecycle.NotCalled, false
	}
	return x.group, x.state.call(), !x.called.IsZero()
}

// NodeDeletionDone takes the outcome of a NodeDeletion, if it is that of an instance that
// had not become a node. It returns outOfStock when the instance had failed for want of
// resources and is gone now: other groups may have what its pods need.
func (m *Machine) NodeDeletionDone(t *lifecycle.Turn, in step.NodeDeletionDone) (outOfStock bool) {
	x := m.instances.get(in.Instance)
	if x == nil || x.state != deleting {
		return false
	}
	if in.Unknown {
		x.called = t.Now
		m.instances.become(x, unanswered)
		return false
	}
	if x.reason == step.InstanceLate {
		tellLateRemoved(t, cmp.Or(x.node, in.Instance), in.Err)
	}
	if in.Err != nil {
		m.instances.become(x, inDoubt)
		if x.mayBeDeletedLate(t.Now) { // by the call before
			m.instances.become(x, unanswered)
		}
		return false
	}
	m.instances.become(x, deleted)
	x.since = t.Now
	m.Retarget(t, x.group, -1)
	return x.class == nodegroup.OutOfResources
}
