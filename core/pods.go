package core

import (
	"fmt"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle/nomination"
	"github.com/berthproject/berth/core/lifecycle/reporting"
)

// pod is a pod of our profiles that the API doesn't show on a node yet.
type pod struct {
	parsed     *cluster.Pod
	assumed    string // node that a bind is under way to, or was done to
	reports    reporting.Pod
	planned    bool                   // a plan was asked for with it pending
	told       bool                   // the Scheduled event is out
	consulting bool                   // extenders are being asked
	candidates bool                   // about victims
	writes     []cluster.ObjectChange // objects assumed for it, while a bind is under way
	nomination nomination.Pod
	preempting *preempting          // while its victims are being asked to leave
	reserved   []framework.Reserver // that keep something for it, while it is assumed
	waits      *waitingPod          // for permission to be bound
	expected   expectation          // of another scheduler
}

func (c *Core) podSet(in step.PodSet, r *step.Ready) {
	o := in.Pod
	switch {
	case o.Status.Phase == v1.PodSucceeded || o.Status.Phase == v1.PodFailed:
		c.forget(o, r)
	case o.Spec.NodeName != "":
		c.running(o, r)
	case o.DeletionTimestamp != nil:
		c.forget(o, r)
	default:
		c.pending(o, r)
	}
}

func (c *Core) podGone(in step.PodGone, r *step.Ready) {
	c.departing(in.UID)
	c.state.Remove(in.UID)
	c.queue.Remove(in.UID)
	if p := c.pods[in.UID]; p != nil {
		c.unreserve(p, r)
		c.unassume(p)
		c.state.Nominate(p.parsed, "")
	}
	c.victimGone(in.UID, r)
	delete(c.pods, in.UID)
	delete(c.others, in.UID)
	c.reporting.PodGone(in.UID)
}

// forget drops a pod that is over or on its way out without a node.
func (c *Core) forget(o *v1.Pod, r *step.Ready) {
	c.podGone(step.PodGone{UID: o.UID}, r)
}

// running books a pod on the node that the API shows.
func (c *Core) running(o *v1.Pod, r *step.Ready) {
	if p := c.pods[o.UID]; p != nil && p.assumed == o.Spec.NodeName {
		c.bound(p, r)
	} else if p != nil { // somebody else has bound it
		c.unreserve(p, r)
	}
	c.queue.Remove(o.UID)
	delete(c.pods, o.UID)
	delete(c.others, o.UID)
	parsed := c.state.Schema.ParsePod(o)
	c.problems(parsed, r)
	defer c.victimBound(parsed, r)
	if i, ok := c.state.Placed(o.UID); ok && i != cluster.NoNode && c.state.Node(i).Name == o.Spec.NodeName {
		if cluster.SamePod(c.state.PodOn(o.UID), parsed) {
			return // as assumed; nothing that a rule reads has changed
		}
	}
	c.state.Place(parsed, o.Spec.NodeName)
}

// pending queues a pod without a node, or takes note of how it changed.
func (c *Core) pending(o *v1.Pod, r *step.Ready) {
	parsed := c.state.Schema.ParsePod(o)
	if !c.sched.Responsible(parsed) {
		c.others[o.UID] = o
		return
	}
	known := c.pods[o.UID]
	if known != nil && known.assumed != "" {
		known.parsed = parsed // a bind is under way; its outcome decides
		return
	}
	c.problems(parsed, r)
	if known == nil {
		known = &pod{}
		c.pods[o.UID] = known
	}
	known.parsed = parsed
	gate := c.sched.Gate(parsed)
	item := c.queue.Get(o.UID)
	if at := c.state.NominatedTo(o.UID); at != "" {
		c.state.Nominate(parsed, at)
	}
	if item == nil {
		item = c.queue.Add(c.now, parsed, c.sched.Class(parsed), gate)
	} else {
		c.queue.Update(item, parsed, c.sched.Class(parsed), gate)
	}
	if item.Diagnosis() != nil && !item.Nominated() {
		c.wantPlan(known) // another scheduler may have called it unschedulable just now
	}
	if c.nomination.Show(c.turn(r), &known.nomination, item) && known.preempting == nil {
		c.queue.Activate(item)
	}
	c.tellGated(known, r)
}

// tellGated says that a pod's gates hold it, if they do.
func (c *Core) tellGated(p *pod, r *step.Ready) {
	gate := c.sched.Gate(p.parsed)
	if gate == nil || c.following || c.cfg.ExternalScheduler {
		return
	}
	c.reporting.Gated(c.turn(r), &p.reports, p.parsed.Object, gate)
}

// problems says of a pod which of its values can't be taken as they stand.
func (c *Core) problems(p *cluster.Pod, r *step.Ready) {
	if !c.following {
		c.reporting.PodProblems(c.turn(r), p.Object, p.Problems)
	}
}

func (c *Core) bindDone(in step.BindDone, r *step.Ready) {
	p := c.pods[in.UID]
	if p == nil || p.assumed == "" {
		return // the API showed the pod first, or it is gone
	}
	if in.Err == nil {
		c.bound(p, r)
		c.victimBound(p.parsed, r)
		return
	}
	c.stats.BindFailures++
	c.unplace(p, step.Unplaced, "SchedulerError", fmt.Sprintf("binding failed: %v", in.Err), in.Err.Error(), r)
}
