package core

import (
	"slices"
	"time"

	"github.com/berthproject/berth/core/record"
)

// This file says for which pods without a node nodes may be bought.

// eligibility is whether nodes may be bought for a pod, and when that changes by itself.
type eligibility struct {
	now  bool
	from time.Time // when now is false: from when on they may be; zero for never
}

// eligible reports whether nodes may be bought for a pod now. They aren't for expendable
// pods, whose priority is below the cutoff; nor for pods of a scheduler that isn't allowed,
// where some are; nor, beside another scheduler, for pods that this one hasn't called
// unschedulable, unless it is bypassed; nor for pods that have waited for less than
// the delay for new pods, which somebody may yet delete or place by other means.
func (c *Core) eligible(p *record.Pod) eligibility {
	a := c.cfg.Autoscale
	obj := p.Parsed.Object
	allowed := len(a.AllowedSchedulers) == 0 || slices.Contains(a.AllowedSchedulers, obj.Spec.SchedulerName)
	asks := c.mode.asksForNode(obj) || slices.Contains(a.BypassedSchedulers, obj.Spec.SchedulerName)
	if int(p.Parsed.Priority) < a.PriorityCutoff || !p.Parsed.StandsIn() && !(allowed && asks) {
		return eligibility{}
	}
	// As in Cluster Autoscaler the annotation can make the delay longer only.
	from := p.Seen.Add(max(a.NewPodDelay, p.Parsed.ScaleUpDelay))
	return eligibility{now: !c.turn.Now.Before(from), from: from}
}

// wantPlan asks for a plan for a pod that found no node, unless one was made with the pod
// pending: at once, or when the pod has waited long enough.
func (c *Core) wantPlan(p *record.Pod) {
	if c.cfg.Autoscale == nil || p.Planned {
		return
	}
	switch e := c.eligible(p); {
	case e.now:
		c.scale.planning.Want(c.turn.Now)
	case !e.from.IsZero():
		c.scale.planning.Want(e.from)
	}
}
