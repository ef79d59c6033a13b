package nodedeletion

// This file follows a node after the provider was asked to delete its instance: the
// outcome of the call, the provider's lists of instances, and what becomes of a node that
// is shown although it was deleted. Each such node is out of the cluster state until it
// is found to be alive.

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// lingerTime is how long after its deletion a node may be shown by the API, and its
// instance listed by the provider, before it is taken for alive.
const lingerTime = 2 * time.Minute

// maxUnanswered is how many calls for an instance may be without an answer: the last counts as a
// failed deletion, and none is made after it.
const maxUnanswered = 2

// NodeDeletionDone takes the outcome of a NodeDeletion, whoever asked for it.
func (m *Machine) NodeDeletionDone(t *lifecycle.Turn, in step.NodeDeletionDone) {
	name, d := m.deletingNode(in)
	if d == nil {
		return
	}
	s := d.state.(deleting)
	if in.Err == nil {
		tellRemoved(t, name, d.drains())
	}
	switch {
	case in.Unknown:
		s.unanswered++
		d.why = fmt.Sprintf("the provider did not answer: %v", in.Err)
		m.wait(t, d, s)
	case in.Err != nil:
		d.why = fmt.Sprintf("the provider did not remove the node: %v", in.Err)
		if s.unanswered > 0 {
			s.unanswered = maxUnanswered
			m.wait(t, d, s)
			return
		}
		m.groups.ScaleDownFailed(t.Now, d.group)
		m.set(d, inDoubt(s))
	case s.gone:
		m.drop(name)
	default:
		m.set(d, deleted{since: t.Now})
	}
}

// wait waits for what the provider lists after a call that had no answer, or that was refused
// after one that had none and may still be carried out.
func (m *Machine) wait(t *lifecycle.Turn, d *deletion, s deleting) {
	if s.unanswered >= maxUnanswered {
		m.groups.ScaleDownFailed(t.Now, d.group)
	}
	m.set(d, unanswered{s.called, t.Now})
}

// deletingNode returns the deletion that waits for an outcome, nil if none does. The
// instance tells best which one it is about: another node may have the name meanwhile, and
// the deletion may have been asked for before the instance was a node.
func (m *Machine) deletingNode(in step.NodeDeletionDone) (string, *deletion) {
	for name, d := range m.deletions {
		if _, ok := d.state.(deleting); ok && in.Instance != "" && d.instance == in.Instance {
			return name, d
		}
	}
	if d := m.deletions[in.Node]; d != nil {
		if _, ok := d.state.(deleting); ok {
			return in.Node, d
		}
	}
	return "", nil
}

// ofAnotherInstance reports whether a node that the API shows isn't the one that the provider was
// asked to delete but a later one of its name: clouds give names again, those made of
// addresses above all. A node whose provider ID isn't known yet may be either.
func (d *deletion) ofAnotherInstance(info *cluster.NodeInfo) bool {
	id := info.Object.Spec.ProviderID
	return d.instance != "" && id != "" && id != d.instance
}

// setAside takes a deletion from under the name of its node, which another node has now. One
// that the provider has answered ends, since its node is gone; the others wait for the answer.
func (m *Machine) setAside(name string, d *deletion) {
	m.drop(name)
	if d.waitsWithoutNode() {
		m.enter(aside(name, d.instance), d)
	}
}

// aside is the key of a deletion whose node's name another node has: no name of a node.
func aside(name, instance string) string { return name + " (" + instance + ")" }

// GroupsSet takes what the provider lists as the outcome of deletions in doubt, and
// remembers which deleted nodes' instances are listed still.
func (m *Machine) GroupsSet(t *lifecycle.Turn, in step.GroupsSet) {
	for _, name := range slices.Sorted(maps.Keys(m.deletions)) {
		d := m.deletions[name]
		d.changed = t.Now // its group may be another, or none
		if !in.Says(d.group) {
			continue
		}
		if !lists(in.Groups, d.group) && t.State.Group(d.group) != nil {
			continue // the next list says whether the group is gone
		}
		switch s := d.state.(type) {
		case deleted:
			s.listed = s.shown != nil && listed(in.Groups, d.group, s.shown)
			d.state = s
		case inDoubt:
			switch {
			case s.gone:
				m.drop(name)
			case listed(in.Groups, d.group, s.node):
				m.alive(t, name, d, s.node)
			default:
				m.set(d, deleted{since: t.Now})
			}
		case unanswered:
			m.settle(t, in.Groups, name, d, s)
		}
	}
}

// settle decides by the provider's list what became of a call that had no answer. An instance that
// isn't listed, or only as one that is being deleted, goes. One that is listed may still be the
// next that a slow provider deletes. The provider is asked once more; after that call nothing is
// placed on the node for lingerTime.
func (m *Machine) settle(t *lifecycle.Turn, groups []nodegroup.Group, name string, d *deletion, s unanswered) {
	there := lists(groups, d.group)
	switch {
	case s.gone:
		m.settled(t, s.node.Name, d)
		m.drop(name)
	case there && !listed(groups, d.group, s.node):
		m.settled(t, s.node.Name, d)
		m.set(d, deleted{since: t.Now})
	case there && s.unanswered < maxUnanswered:
		m.repeat(t, d, s)
	case !there || t.Now.Sub(s.since) >= lingerTime:
		m.alive(t, name, d, s.node)
	}
}

// lists reports whether a list has a group.
func lists(groups []nodegroup.Group, group string) bool {
	return slices.ContainsFunc(groups, func(g nodegroup.Group) bool { return g.ID == group })
}

// alive returns a node to the state and ends its deletion, which the provider hasn't carried out.
func (m *Machine) alive(t *lifecycle.Turn, name string, d *deletion, node *cluster.NodeInfo) {
	d.instance = ""
	t.State.SetNode(m.interruptions.AsMarked(d.on(node)))
	m.giveUp(t, name, d, d.why)
}

// settled reports the deletion of a node as done: the list shows it, though the answer never came.
func (m *Machine) settled(t *lifecycle.Turn, node string, d *deletion) {
	tellRemoved(t, node, d.drains())
	t.Ready.SettledDeletions = append(t.Ready.SettledDeletions, step.NodeDeletionDone{Node: node, Instance: d.instance})
}

// repeat asks the provider to delete an instance again.
func (m *Machine) repeat(t *lifecycle.Turn, d *deletion, s unanswered) {
	m.set(d, deleting{s.called})
	t.Decide(step.Decision{Kind: step.RemovalRepeated, Node: s.node.Name, Group: d.group, Reason: d.why + "; its instance is still listed"})
	m.ask(t, d, s.node)
}

// listed reports whether the provider lists a node's instance, in its group or in another, to which
// it may have moved. A provider that doesn't list instances, or not this group, is taken at its
// word: it failed, so the instance exists.
func listed(groups []nodegroup.Group, group string, node *cluster.NodeInfo) bool {
	known := false
	for i := range groups {
		g := &groups[i]
		if g.ID == group {
			known = g.Instances != nil
		}
		if slices.ContainsFunc(g.Instances, func(x nodegroup.Instance) bool {
			return x.Node == node.Name || x.ID != "" && x.ID == node.Object.Spec.ProviderID
		}) {
			return true
		}
	}
	return !known
}

// lingering says why the API may still have the Node object of a deleted instance.
func lingering(n *cluster.NodeInfo) string {
	const gone = "its instance is deleted, and the API still has the Node object"
	if left := n.Object.Finalizers; len(left) > 0 {
		return gone + ": finalizers are left: " + strings.Join(left, ", ")
	}
	return gone + ": nothing has deleted it; that is the work of the cloud controller manager"
}

// linger looks, lingerTime after a deletion, whether the node is alive: shown by the API
// since, and listed by the provider. Then its deletion begins again.
func (m *Machine) linger(t *lifecycle.Turn, d *deletion, s deleted) {
	if !s.listed {
		if s.shown != nil && !s.lingers {
			s.lingers = true
			t.Decide(step.Decision{Kind: step.NodeStays, Node: s.shown.Name, Group: d.group, Reason: lingering(s.shown)})
		}
		s.since = t.Now
		d.state = s
		return
	}
	t.State.SetNode(m.interruptions.AsMarked(d.on(s.shown)))
	m.set(d, tainted{t.Now})
	d.instance = ""
}
