package core

import (
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// route hands an input to the part of the core that it concerns.
func (c *Core) route(in step.Input, r *step.Ready) {
	switch in := in.(type) {
	case step.PodSet:
		c.podSet(in, r)
	case step.PodGone:
		c.podGone(in, r)
	case step.NodeSet:
		c.nodeSet(in, r)
	case step.NodeGone:
		c.nodeGone(in, r)
	case step.WorkloadSet:
		c.workloadSet(in, r)
	case step.DaemonSetSet:
		c.daemonSetSet(in, r)
	case step.WorkloadGone:
		c.workloadGone(in, r)
	case step.ObjectSet:
		c.objectSet(in, r)
	case step.ObjectGone:
		c.objectGone(in, r)
	case step.GroupsSet:
		c.groupsSet(in, r)
	case step.PlanMade:
		c.planMade(in, r)
	case step.Consulted:
		c.consulted(in, r)
	case step.BindDone:
		c.bindDone(in, r)
	case step.PreemptionDone:
		c.preemptionDone(in, r)
	case step.NominationDone:
		c.nomination.Done(c.turn(r), in)
	case step.TaintDone:
		c.taintDone(in, r)
	case step.EvictionDone:
		c.evictionDone(in, r)
	case step.ScaleUpDone:
		c.scaleUpDone(in, r)
	case step.NodeDeletionDone:
		c.nodeDeletionDone(in, r)
	}
}

// decided enters a decision into the ledger.
func (c *Core) decided(r *step.Ready, d step.Decision) { c.turn(r).Decide(d) }

// turn returns what lifecycle machines work with now; r is the work so far.
func (c *Core) turn(r *step.Ready) *lifecycle.Turn {
	c.shared.Now, c.shared.Ready = c.now, r
	return &c.shared
}

func podName(namespace, name string) string { return namespace + "/" + name }
