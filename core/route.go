package core

import "github.com/berthproject/berth/core/step"

// route hands an input to the part of the core that it concerns. What asks for scaling is
// of no interest to a core that only schedules.
func (c *Core) route(in step.Input) {
	c.comparison.Observe(in)
	switch in := in.(type) {
	case step.PodSet:
		c.podSet(in)
	case step.PodGone:
		c.podGone(in.UID)
	case step.NodeSet:
		c.nodeSet(in)
	case step.NodeGone:
		c.nodeGone(in)
	case step.WorkloadSet:
		c.workloadSet(in)
	case step.DaemonSetSet:
		c.daemonSetSet(in)
	case step.WorkloadGone:
		c.workloadGone(in)
	case step.ObjectSet:
		c.objectSet(in)
	case step.ObjectGone:
		c.objectGone(in)
	case step.GroupsSet:
		c.groupsSet(in)
	case step.ServerTime:
		c.turn.ServerTold(in.At)
	case step.PlanMade:
		c.planMade(in)
	case step.Consulted:
		c.consulted(in)
	case step.BindDone:
		c.bindDone(in)
	case step.DeallocationDone:
		c.deallocation.DeallocationDone(c.turn, in)
	case step.PreemptionDone:
		c.preemption.PreemptionDone(c.turn, in)
	case step.NominationDone:
		c.nomination.NominationDone(c.turn, in)
	case step.StatusWritten:
		c.headroom.StatusWritten(c.turn, in)
		c.podGroups.StatusWritten(c.turn, in)
	case step.TaintDone:
		c.taintDone(in)
	case step.EvictionDone:
		c.evictionDone(in)
	case step.SurgeDone:
		c.surgeDone(in)
	case step.ScaleUpDone:
		c.scaleUpDone(in)
	case step.NodeDeletionDone:
		c.nodeDeletionDone(in)
	}
}
