package nodedeletion

// This file takes a tainted node to its end: what is looked at before its pods are asked to
// leave, while they are, and before the provider is asked to delete it. What must be true:
// nothing is asked of a pod or the provider in a Step in which the node would stay.
//
// Before the groups are known nothing goes on: the node keeps the taint until then.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler/drainability"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/draining"
	"github.com/berthproject/berth/core/step"
)

// advance takes a deletion further that is due, or of whose node something has changed.
// Whatever it finds, d isn't due until something changes or its time comes.
func (m *Machine) advance(t *lifecycle.Turn, name string, d *deletion) {
	d.changed = time.Time{}
	switch s := d.state.(type) {
	case tainted, resumed:
		m.beginDrain(t, name, d)
	case drainingPods, delayed, batched:
		m.advanceDrain(t, name, d)
	case deleted:
		m.linger(t, d, s)
	case untaintFailed:
		m.set(d, untainting{})
		t.Ready.Taints = append(t.Ready.Taints, d.takeOff(name))
	}
}

// beginDrain tells the pods of a tainted node to leave, if the node may still go.
func (m *Machine) beginDrain(t *lifecycle.Turn, name string, d *deletion) {
	if !m.groups.Known() {
		return // without groups there is no telling; looked at again when they are known
	}
	n := t.State.NodeByName(name)
	if n.Group != "" {
		// A deletion that was found by its taint knows its group from here on.
		m.setGroup(d, n.Group) // as it now is: the node may have been tainted by another process
	}
	if _, taken := d.state.(resumed); taken && t.State.Group(n.Group) == nil {
		m.drop(name)
		m.leave(t, name, n.Group, "its removal had begun, and the provider does not list its node group")
		return
	}
	// Pods that have a home may be on the node; any other may have come since the plan.
	if why := m.whyStays(t, n, func(uid types.UID) bool { return d.homes[uid] }); why != "" {
		m.cancel(t, name, d, why)
		return
	}
	if !m.mayShrink(t, t.State.Group(n.Group), 0) {
		m.cancel(t, name, d, "the node group is at its minimum")
		return
	}
	// The order of evictions must not depend on that of pods on the node.
	var pods, daemons []*cluster.Pod
	for _, p := range n.Pods {
		switch {
		case p.OfNode:
			if m.evictsDaemon(d, p) {
				daemons = append(daemons, p)
			}
		// Pods that are terminating anyway are waited for.
		case d.homes[p.UID] || p.Object.DeletionTimestamp != nil && !m.ignores(t, p):
			pods = append(pods, p)
		}
	}
	byName := func(a, b *cluster.Pod) int { return strings.Compare(a.Name(), b.Name()) }
	slices.SortFunc(pods, byName)
	slices.SortFunc(daemons, byName)
	drain := draining.New(t, &m.cfg.Drain, name, pods, daemons, m.homes)
	if d.interrupted {
		drain.Alone()
	}
	m.set(d, drainingPods{drain})
	m.advanceDrain(t, name, d)
}

// advanceDrain takes a node further whose pods have been asked to leave.
func (m *Machine) advanceDrain(t *lifecycle.Turn, name string, d *deletion) {
	if why := m.whyDrainEnds(t, name, d); why != "" {
		m.cancelDrain(t, name, d, why)
		return
	}
	if s, ok := d.state.(drainingPods); ok {
		done, why := s.Advance(t)
		if why != "" {
			if s.Surging() {
				m.cancelDrain(t, name, d, why) // its Deployments aren't asked again at once
			} else {
				m.cancel(t, name, d, why)
			}
			return
		}
		if !done {
			return
		}
		// The next states follow in the same Step if nothing delays them.
		m.set(d, delayed{t.Now})
	}
	if s, ok := d.state.(delayed); ok {
		if delays(t.State.NodeByName(name).Object) && t.Now.Before(s.due(&m.cfg)) {
			return
		}
		m.set(d, batched{})
		m.toGather(d.group)
	}
}

// whyDrainEnds returns why a node stays whose pods have been asked to leave, "" if it doesn't.
func (m *Machine) whyDrainEnds(t *lifecycle.Turn, name string, d *deletion) string {
	n := t.State.NodeByName(name)
	// After draining no pod is expected any more.
	expected := func(types.UID) bool { return false }
	if s, ok := d.state.(drainingPods); ok {
		expected = s.Has
	}
	why := m.whyStays(t, n, expected)
	if why == "" && n.Group != d.group {
		why = fmt.Sprintf("its node group was %s and is %s now", d.group, n.Group)
	}
	return why
}

// whyStays tells why a node isn't deleted, "" if it may be: expected says which of its pods
// leave, or are to.
// It is asked before each step, since anything may have changed; its text is for people.
func (m *Machine) whyStays(t *lifecycle.Turn, n *cluster.Node, expected func(types.UID) bool) string {
	switch {
	case n.Group == "" || t.State.Group(n.Group) == nil:
		return "the node is in no node group"
	case t.State.Group(n.Group).KeepNodes != "":
		return t.State.Group(n.Group).KeepNodes
	case n.Object.DeletionTimestamp != nil:
		return "the node is being deleted by another client"
	case n.Object.Annotations[cluster.ScaleDownDisabledAnnotation] == "true" || n.Object.Annotations[cluster.DoNotDisruptAnnotation] == "true":
		return "an annotation of the node disables its removal"
	case len(n.Nominated) > 0:
		if i := slices.IndexFunc(n.Nominated, func(p *cluster.Pod) bool { return !p.StandsIn() }); i >= 0 {
			return fmt.Sprintf("pod %s is nominated to the node", n.Nominated[i].Name())
		}
		return "room is reserved on the node for expected pods"
	}
	for _, p := range n.Pods {
		if !p.OfNode && p.Object.DeletionTimestamp == nil && !expected(p.UID) && !m.ignores(t, p) {
			return fmt.Sprintf("pod %s is on the node, and no other node was found for it", p.Name())
		}
	}
	return ""
}

// ignores reports whether a pod may go with its node.
// By the time of the API server, as ages of pods are.
func (m *Machine) ignores(t *lifecycle.Turn, p *cluster.Pod) bool {
	ctx := drainability.Context{Rules: &m.cfg.Rules, State: t.State, Now: t.ServerNow()}
	return ctx.Judge(p).Outcome == drainability.Ignore
}

// gather decides when the batched nodes of a group go: DeletionBatchInterval after the first
// was, in an atomic group after the last was.
func (m *Machine) gather(t *lifecycle.Turn, group string) {
	g := t.State.Group(group)
	until := t.Now.Add(m.cfg.DeletionBatchInterval)
	var open []*deletion
	for _, d := range m.deletions { // in any order
		if d.group != group {
			continue
		}
		switch s, ok := d.state.(batched); {
		// Not yet decided; decided below, together.
		case ok && s.until.IsZero():
			open = append(open, d)
		// A batch is open already: these join it.
		case ok && s.until.Before(until):
			until = s.until
		case !ok && d.planned() && atomic(g):
			return // it waits for this one
		}
	}
	for _, d := range open {
		d.state = batched{until: until}
	}
}

// deleteBatches asks the provider to delete the batched nodes whose time has come.
// Checked once more right before: what is asked of the provider can't be taken back.
func (m *Machine) deleteBatches(t *lifecycle.Turn) {
	for _, name := range m.holdForBinds(t, m.names(func(d *deletion) bool {
		s, ok := d.state.(batched)
		return ok && !s.until.IsZero() && !t.Now.Before(s.until)
	})) {
		d := m.deletions[name]
		if _, ok := d.state.(batched); !ok {
			continue // it stays, as another of its atomic group does
		}
		n := t.State.NodeByName(name)
		if slices.ContainsFunc(n.Pods, func(p *cluster.Pod) bool {
			return !p.OfNode && !m.ignores(t, p)
		}) {
			m.cancel(t, name, d, "a pod arrived on the node and is terminating")
			continue
		}
		if g := t.State.Group(d.group); g == nil || !m.mayShrink(t, g, 0) {
			m.cancel(t, name, d, "the node group is at its minimum")
			continue
		}
		m.delete(t, n, d)
	}
}

// holdForBinds takes batched nodes whose time has come, and returns those that don't wait for
// a pod that has been placed on them and that the API doesn't show there. It is a daemon pod
// that tolerates all taints: any other has the node stay. Its bind, which may go out in this
// very Step, is not to meet a node that the provider is deleting. A node waits for bindTime at
// most, since daemon pods may come again and again; the nodes of an atomic group wait together.
func (m *Machine) holdForBinds(t *lifecycle.Turn, due []string) []string {
	isAtomic := func(d *deletion) bool { return atomic(t.State.Group(d.group)) }
	waiting := func(name string) bool {
		return slices.ContainsFunc(t.State.NodeByName(name).Pods, func(p *cluster.Pod) bool { return p.Object.Spec.NodeName == "" })
	}
	groups := map[string]bool{} // atomic ones that wait
	for _, name := range due {
		if d := m.deletions[name]; isAtomic(d) && waiting(name) {
			groups[d.group] = true
		}
	}
	return slices.DeleteFunc(due, func(name string) bool {
		d := m.deletions[name]
		s := d.state.(batched)
		if !groups[d.group] && !waiting(name) {
			return false
		}
		if s.held.IsZero() {
			s.held = t.Now.Add(bindTime)
			d.state = s
		}
		return t.Now.Before(s.held)
	})
}

// delete asks the provider to delete a node.
// From here on the node counts as gone for placement; the state forgets it at once.
func (m *Machine) delete(t *lifecycle.Turn, n *cluster.Node, d *deletion) {
	// A node whose instance the provider has lost isn't in the target any more.
	lowers := !m.groups.Lost(n.NodeInfo)
	m.set(d, deleting{called{node: n.NodeInfo, lowered: lowers}})
	d.instance = n.Object.Spec.ProviderID
	m.ask(t, d, n.NodeInfo)
	t.Decide(step.Decision{Kind: step.NodeRemoved, Node: n.Name, Group: d.group, Reason: d.why})
	t.Emit(step.NodeEvent(n.Object, "ScaleDown", "ScalingDown", "node removed by cluster autoscaler: "+d.why))
	if lowers {
		m.groups.Retarget(t, d.group, -1)
	}
	m.groups.ScaledDown(t.Now, d.group)
	// Their homes were kept for replacements that won't come.
	if d.drains() {
		m.homes.ReleaseUnevicted(t, n.Name) // of pods that ended by themselves
	}
	t.State.RemoveNode(n.Name)
}

// ask asks the provider to delete the instance of a node.
func (m *Machine) ask(t *lifecycle.Turn, d *deletion, n *cluster.NodeInfo) {
	t.Ready.NodeDeletions = append(t.Ready.NodeDeletions, step.NodeDeletion{
		Group: d.group, Node: n.Name, Instance: n.Object.Spec.ProviderID,
		Reason: d.reason(n), GPU: cluster.GPUOf(&n.Allocatable), Atomic: atomic(t.State.Group(d.group)),
	})
}

// giveUp ends a deletion that has failed.
// It emits an event as Cluster Autoscaler does.
func (m *Machine) giveUp(t *lifecycle.Turn, name string, d *deletion, why string) {
	what := "failed to delete empty node: "
	if d.drains() {
		what = "failed to drain and delete node: "
	}
	m.unmark(t, name, d, step.NodeKept, why)
	t.Emit(step.NodeEvent(t.State.NodeByName(name).Object, "ScaleDownFailed", "ScalingDown", what+why).AsWarning())
}

// unmark has the taint of a node taken off; the entry remains until that has worked. The
// node's time of being unneeded starts anew.
// The state shows the node without taint at once; if the write fails, it is tried again.
func (m *Machine) unmark(t *lifecycle.Turn, name string, d *deletion, kind step.DecisionKind, why string) {
	m.set(d, untainting{})
	m.candidates.Forget(name)
	if d.drains() {
		m.homes.ReleaseUnevicted(t, name)
	}
	t.Decide(step.Decision{Kind: kind, Node: name, Reason: why})
	t.Ready.Taints = append(t.Ready.Taints, d.takeOff(name))
	t.State.SetNode(d.off(t.State.NodeByName(name).NodeInfo))
}

// enableEviction is the annotation by which a daemon pod says whether it is to be
// evicted, whatever the flags say.
const enableEviction = "cluster-autoscaler.kubernetes.io/enable-ds-eviction"

// evictsDaemon reports whether a daemon pod is asked to leave.
// Mirror pods can't be evicted: the kubelet would make them again.
func (m *Machine) evictsDaemon(d *deletion, p *cluster.Pod) bool {
	if !p.Daemon() || p.Mirror() || p.Object.DeletionTimestamp != nil {
		return false
	}
	switch wish, said := p.Object.Annotations[enableEviction]; {
	case said:
		return wish == "true"
	case d.drains():
		return !m.cfg.KeepDaemonPods
	default:
		return m.cfg.EvictDaemonPods
	}
}
