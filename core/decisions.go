package core

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/core/weighing"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
)

// This file hands each decision to the machines that it concerns. What a decision means
// depends on the mode (mode.go).

// try decides on a pod that was popped.
func (c *Core) try(item *queue.Item) {
	if item.Swept() && c.helpedSince(item) {
		c.queue.SetHelped(item)
	}
	seen := c.state.Head()
	c.carryOut(item, c.sched.Decide(item.Pod(), c.classOf(item), c.queue), seen)
}

// classOf returns the class of a pod that is tried, if it would be signed now as it was last, and
// nil otherwise. Signing costs about as much as the decision.
func (c *Core) classOf(item *queue.Item) *engine.Class {
	c.queue.SignedBy(c.state.SignatureInputs())
	// What a pod's claims lead to changes when pods are placed, and when its nomination is taken back;
	// and where the other members of its group are, when they are placed.
	if c.cfg.Engine.Rebuilt || !c.queue.Signed(item) || c.state.TakesObjects(item.Pod()) || inDomain(c.state, item.Pod()) {
		return nil
	}
	return item.Class()
}

// inDomain reports whether a pod has to be in one topology domain with other members of its group.
func inDomain(state *cluster.State, pod *cluster.Pod) bool {
	return pod.Group != nil && cluster.RequiredTopology(state.PodGroup(*pod.Group)) != ""
}

// helpedSince reports whether decisions of this Step may have let in a pod that was swept:
// then it would have been woken for them, and no wake-up was missed.
func (c *Core) helpedSince(item *queue.Item) bool {
	changes, known := c.state.Since(c.woken)
	if !known || len(changes) == 0 || item.Diagnosis() == nil {
		return !known
	}
	help, _ := c.sched.MayHelp(item.Class(), item.Diagnosis(), changes)
	return help != engine.NoHelp
}

// carryOut does what follows from a decision that has seen the state's changes up to
// seen.
func (c *Core) carryOut(item *queue.Item, d scheduler.Decision, seen cluster.Seq) {
	p := c.pods[item.Pod().UID]
	c.queue.SetClass(item, d.Class)
	c.consulting.PodDecided(&p.Consulting)
	switch {
	case item.Pod().StandsIn():
		c.standInDecided(item, &d)
	case d.Consult != nil || d.Candidates != nil:
		c.consulting.Ask(c.turn, &p.Consulting, item, &d)
	case d.Failure != "":
		c.turn.Decide(step.Decision{Kind: step.Failed, Pod: item.Pod().Name(), Profile: item.Pod().Object.Spec.SchedulerName,
			Reason: d.Failure, Position: uint64(seen)})
		c.mode.failed(p, item, d.Failure)
	case d.Node == nil:
		c.stats.Unschedulable++
		waits := step.Decision{Kind: step.Waits, Pod: item.Pod().Name(), Profile: item.Pod().Object.Spec.SchedulerName,
			Reason: d.Message, Rejected: step.WhyRejected(d.Diagnosis), Position: uint64(seen)}
		if d.Asks() { // of a pod that preempts Preempts says it
			waits.Weighed = d.Weighed
		}
		c.turn.Decide(waits)
		c.mode.rejected(p, item, d)
		if d.Victims == nil {
			c.headroom.PodWaits(item.Pod(), func(standIn types.UID) { c.reservation.HandOver(c.turn, standIn, item.Pod().UID) })
		}
	default:
		c.queue.Placed(item)
		if item.Swept() {
			c.stats.MissedWakeups++
		}
		groups := groupMembers{c}
		groups.Assumed(item, d.Writes)
		groups.Placed(c.turn, item, d, seen)
	}
}

// consulted carries out a decision for which extenders were asked.
func (c *Core) consulted(in step.Consulted) {
	seen := c.state.Head()
	d, waited := c.consulting.Answer(c.turn, in)
	if !waited {
		return
	}
	item := c.queue.Get(in.UID)
	if in.Err != nil {
		p := c.pods[in.UID]
		c.reporting.PodFailed(c.turn, &p.Reports, p.Parsed.Object, in.Err.Error())
		c.queue.Fail(c.turn.Now, item)
		return
	}
	c.carryOut(item, d, seen)
	c.wakeForMissed(item)
}

// wakeForMissed wakes the class of a pod that was rejected after extenders were asked, if
// changes may help it that the queue was asked about meanwhile.
func (c *Core) wakeForMissed(item *queue.Item) {
	if item.Stage() != queue.Unschedulable {
		return
	}
	asked := c.pods[item.Pod().UID].Consulting.Asked()
	if asked >= c.woken {
		return // the queue will be asked about all that has changed since
	}
	changes, known := c.state.Since(asked)
	if known {
		changes = cluster.ReadByRules(changes[:c.woken-asked])
	}
	if !known || len(changes) > 0 {
		c.queue.WakeClass(c.turn.Now, item.Class(), c.mayHelp(known, changes))
	}
}

// losers tells the other machines of pods that lose their node before they are bound, and of those
// whose binding takes a while; it implements binding.Others.
type losers struct{ c *Core }

// SlowBindBegun implements binding.Others: an autoscaler that isn't Berth leaves the node alone.
func (l losers) SlowBindBegun(t *lifecycle.Turn, pod *cluster.Pod, node string) {
	if !l.c.cfg.NoExpectedNominations {
		l.c.nomination.Expect(t, pod, node)
	}
}

// BeforeNodeLost implements binding.Others.
func (l losers) BeforeNodeLost(t *lifecycle.Turn, pod *cluster.Pod) {
	l.c.preemption.BeforeBindUndone(t, pod)
}

// NodeLost implements binding.Others: the pod may yet come to the node that it was nominated
// to.
func (l losers) NodeLost(t *lifecycle.Turn, item *queue.Item, reason, message string) {
	p := l.c.pods[item.Pod().UID]
	l.c.reporting.PodUnschedulable(t, &p.Reports, item.Pod().Object, reason, message)
	l.c.nomination.Restore(t, &p.Nomination, item)
}

// BindFailed implements binding.Others.
func (l losers) BindFailed(t *lifecycle.Turn, item *queue.Item, node string) {
	l.c.podGroups.BindFailed(t, item, node)
}

// PodBackedOff implements binding.Others.
func (l losers) PodBackedOff(t *lifecycle.Turn, pod *cluster.Pod) {
	l.c.preemption.PodRemoved(t, pod.UID)
}

// groupMembers follows members of pod groups as single pods; it implements podgroups.Members.
type groupMembers struct{ c *Core }

// Class implements podgroups.Members.
func (m *groupMembers) Class(item *queue.Item) *engine.Class {
	class := m.c.classOf(item)
	if class == nil {
		class = m.c.sched.Class(item.Pod())
		m.c.queue.SetClass(item, class)
	}
	return class
}

// Known implements podgroups.Members.
func (m *groupMembers) Known(uid types.UID) bool { return m.c.pods[uid] != nil }

// Assumed implements podgroups.Members.
func (m *groupMembers) Assumed(item *queue.Item, writes []cluster.ObjectChange) {
	m.c.mode.assumed(m.c.pods[item.Pod().UID], item.Pod(), writes)
}

// Placed implements podgroups.Members.
func (m *groupMembers) Placed(t *lifecycle.Turn, item *queue.Item, d scheduler.Decision, seen cluster.Seq) {
	c, p := m.c, m.c.pods[item.Pod().UID]
	c.queue.SetNominated(item, false)
	c.stats.Scheduled++
	p.Planned = false
	c.reservation.ReleasePodElsewhere(t, item.Pod().UID, d.Node.Name)
	c.forgetAsking(p)
	p.Nomination.Placed(c.state, d.Node.Name)
	c.mode.placed(p, item, d, seen)
}

// Waits implements podgroups.Members.
func (m *groupMembers) Waits(_ *lifecycle.Turn, item *queue.Item, why string) {
	m.c.stats.Unschedulable++
	p := m.c.pods[item.Pod().UID]
	m.c.mode.memberRejected(p, item, why)
	m.c.wantPlan(p)
}

// Preempts implements podgroups.Members.
func (m *groupMembers) Preempts(_ *lifecycle.Turn, g *schedulingv1beta1.PodGroup, members []*cluster.Pod, victims *framework.Victims, weighed *weighing.Result) {
	m.c.mode.groupPreempts(g, members, victims, weighed)
}

// Asks implements podgroups.Members.
func (m *groupMembers) Asks(_ *lifecycle.Turn, items []*queue.Item, weighed *weighing.Result) {
	if m.Decides() {
		gangs{m.c}.noteAsking(items, weighed)
	}
}

// FitsNowhere implements podgroups.Members: devices that keep a member from every node are taken away from
// its claim.
func (m *groupMembers) FitsNowhere(t *lifecycle.Turn, pod *cluster.Pod, d *engine.Diagnosis) {
	if m.Decides() {
		m.c.deallocation.PodRejected(t, pod, d)
	}
}

// KeepPlace implements podgroups.Members.
func (m *groupMembers) KeepPlace(t *lifecycle.Turn, item *queue.Item, node string) {
	m.c.nomination.KeepPlace(t, &m.c.pods[item.Pod().UID].Nomination, item, node)
}

// FreePlace implements podgroups.Members.
func (m *groupMembers) FreePlace(t *lifecycle.Turn, item *queue.Item) {
	m.c.nomination.WithdrawFrom(t, item)
}

// Shown implements podgroups.Members.
func (m *groupMembers) Shown(item *queue.Item) string {
	return m.c.pods[item.Pod().UID].Nomination.Shown()
}

// Held implements podgroups.Members. No place is kept for a group that can't be tried, say because a member
// is gone: others may use the nodes, and those that are coming are given up.
func (m *groupMembers) Held(t *lifecycle.Turn, uid types.UID, why string, failure bool) {
	m.c.reservation.ReleasePod(t, uid)
	m.c.mode.reportHeld(m.c.pods[uid], why, failure)
}

// Decides implements podgroups.Members.
func (m *groupMembers) Decides() bool { return m.c.mode.decidesGroups() }

// expecting returns profiles for a core beside another scheduler: preempting and asking
// extenders is that one's.
func expecting(profiles []*framework.Profile) []*framework.Profile {
	out := withoutExtenders(profiles)
	for _, own := range out {
		own.Preempter = nil
	}
	return out
}

// withoutExtenders returns profiles for a shadow: an extender may take a question for a
// placement that is to come.
func withoutExtenders(profiles []*framework.Profile) []*framework.Profile {
	out := make([]*framework.Profile, len(profiles))
	for i, p := range profiles {
		own := *p
		own.Extenders = nil
		out[i] = &own
	}
	return out
}
