package core

import (
	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/record"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/core/weighing"
)

// deciding is the mode of a core that schedules: what it decides is done.
// The other modes differ in what becomes of a decision, not in how it is made.
type deciding struct{ c *Core }

var _ mode = deciding{}

func (m deciding) standBy() mode { return standingBy{m} }
func (m deciding) lead() mode    { return m }

// class returns the class by which the engine places a pod in this mode.
func (m deciding) class(p *cluster.Pod) *engine.Class { return m.c.sched.Class(p) }

// assumed reserves what a decision has taken for a pod.
func (m deciding) assumed(p *record.Pod, pod *cluster.Pod, writes []cluster.ObjectChange) {
	m.c.binding.Assume(m.c.state, &p.Binding, pod, writes)
}

// placed enters the decision into the ledger before what plugins say about it.
func (m deciding) placed(p *record.Pod, item *queue.Item, d scheduler.Decision, seen cluster.Seq) {
	m.c.notePlaced(item, &d, seen)
	m.c.binding.PodPlaced(m.c.turn, &p.Binding, item, d.Node)
}

// notePlaced enters a decision for a node, which has seen the changes up to seen, into the
// ledger.
func (c *Core) notePlaced(item *queue.Item, d *scheduler.Decision, seen cluster.Seq) {
	placed := step.Decision{Kind: step.Placed, Pod: item.Pod().Name(), Profile: item.Pod().Object.Spec.SchedulerName,
		Node: d.Node.Name, Score: d.Score, Scores: d.Breakdown.Scores, Position: uint64(seen)}
	if n := c.state.Node(d.Breakdown.RunnerUp); n != nil {
		placed.RunnerUp = &step.RunnerUp{Node: n.Name, Score: d.Breakdown.RunnerUpScore}
	}
	c.turn.Decide(placed)
}

// rejected has the victims leave first, so that it is known whether the pod is held; those
// that waited for permission leave their nodes last, when the pod is where it waits.
func (m deciding) rejected(p *record.Pod, item *queue.Item, d scheduler.Decision) {
	c := m.c
	if d.Victims != nil {
		c.preemption.Preempt(c.turn, &p.Preemption, item.Pod(), d.Victims, d.Weighed)
		defer c.binding.Resolve(c.turn)
	}
	c.deallocation.PodRejected(c.turn, item.Pod(), d.Diagnosis)
	c.noteAsking(p, item, &d)
	c.nomination.Write(c.turn, &p.Nomination, item)
	switch {
	case p.Preemption.Asking():
		c.queue.Hold(c.turn.Now, item, d.Diagnosis)
	case d.Asks():
		c.queue.Postpone(c.turn.Now, item, d.Diagnosis)
	default:
		c.queue.Reject(c.turn.Now, item, d.Diagnosis)
		if !item.Nominated() {
			c.wantPlan(p)
		}
	}
	c.reporting.PodUnschedulable(c.turn, &p.Reports, p.Parsed.Object, v1.PodReasonUnschedulable, d.Message)
	if item.Swept() {
		message := d.Message
		if d.Victims != nil {
			c.stats.MissedWakeups++
			message = d.Diagnosis.MessageWith("") // victims leave a node for this pod alone
		}
		c.reporting.TellClass(c.turn, d.Class, message) // the others weren't tried
	}
}

// failed puts a pod back after an error, which isn't a rejection: it is tried again with
// backoff, whatever changes.
func (m deciding) failed(p *record.Pod, item *queue.Item, why string) {
	c := m.c
	c.nomination.Write(c.turn, &p.Nomination, item)
	c.reporting.PodFailed(c.turn, &p.Reports, p.Parsed.Object, why)
	c.queue.Fail(c.turn.Now, item)
}

// reportGate tells the API why a pod isn't queued at all.
func (m deciding) reportGate(p *record.Pod) {
	if gate := m.c.sched.Gate(p.Parsed); gate != nil {
		m.c.reporting.PodGated(m.c.turn, &p.Reports, p.Parsed.Object, gate)
	}
}

// reportHeld tells the API why a pod is held back; failure says that it is due to an error,
// not to a rejection.
func (m deciding) reportHeld(p *record.Pod, why string, failure bool) {
	reason := v1.PodReasonUnschedulable
	if failure {
		reason = "SchedulerError"
	}
	m.c.reporting.PodHeld(m.c.turn, &p.Reports, p.Parsed.Object, reason, why)
}

func (deciding) decidesGroups() bool { return true }

// groupPreempts has victims leave for a group as a whole.
func (m deciding) groupPreempts(g *schedulingv1beta1.PodGroup, members []*cluster.Pod, victims *framework.Victims, weighed *weighing.Result) {
	m.c.preemption.PreemptForGroup(m.c.turn, g, members, victims, weighed)
	m.c.binding.Resolve(m.c.turn)
}

// memberRejected reports one member of a group that found no places; the queue knows the
// group as a whole.
func (m deciding) memberRejected(p *record.Pod, item *queue.Item, why string) {
	m.c.nomination.Write(m.c.turn, &p.Nomination, item)
	m.c.reporting.PodUnschedulable(m.c.turn, &p.Reports, p.Parsed.Object, v1.PodReasonUnschedulable, why)
}

func (m deciding) reportProblems(pod *cluster.Pod) {
	m.c.reporting.PodProblems(m.c.turn, pod.Object, pod.Problems)
}

// nodeShown returns the node as the state is to have it: with the taints that are on their
// way, and without what interruptions change. Order matters: each machine sees what the one
// before has made of it.
func (m deciding) nodeShown(obj *v1.Node, info *cluster.NodeInfo) *cluster.NodeInfo {
	c := m.c
	c.reporting.NodeProblems(c.turn, obj, c.nodeProblems(info))
	if c.cfg.Autoscale == nil {
		return info
	}
	n := c.scale.candidates.NodeSet(info, c.scale.deletions.NodeSet(c.turn, info))
	return c.scale.interruptions.NodeSet(c.turn, info, n)
}

func (m deciding) reportNode(n *cluster.NodeInfo) {
	m.c.reporting.NodeProblems(m.c.turn, n.Object, m.c.nodeProblems(n))
}

// resumeNode takes over what an earlier leader has left on the node.
func (m deciding) resumeNode(n *cluster.NodeInfo) {
	m.c.scale.candidates.Resume(n)
	m.c.scale.deletions.Resume(m.c.turn, n)
}

func (m deciding) commitPlan(plan *autoscaler.Plan) { m.c.commitPlan(plan) }

func (deciding) beforePlan() bool         { return true }
func (deciding) asksForNode(*v1.Pod) bool { return true }
