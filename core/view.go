package core

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/nodegroups"
)

// This file shows the core to those who explain it.

// View returns what explanations are read from, between Steps.
func (c *Core) View() *explain.View { return c.view }

// newView returns the view of a core that is otherwise complete.
func newView(c *Core) *explain.View {
	v := &explain.View{
		Profiles: c.cfg.Profiles, Options: c.cfg.Engine,
		Now: func() time.Time { return c.turn.Now }, ServerNow: c.turn.ServerNow,
		State: c.state, Scheduler: c.sched, Queue: c.queue, Pods: c.pods, Others: maps.Values(c.others),
		Victims: c.preemption, Places: c.reservation, PodGroups: c.podGroups, Headroom: c.headroom,
	}
	if a := c.cfg.Autoscale; a != nil {
		s := &c.scale
		v.Autoscaler = &explain.Autoscaler{
			Removal: a.Removal, Limits: a.Limits, Readiness: a.Readiness, PriorityCutoff: a.PriorityCutoff, DisableScaleDown: a.DisableScaleDown, NeedPrices: a.NeedsPrices(),
			Plans: describedPlans{c}, Planning: s.planning, Groups: describedGroups{s.groups, c.turn}, Launches: s.launches,
			Nodes: s.nodes, KeptNodes: s.keptNodes, Candidates: s.candidates, Deletions: s.deletions, Homes: s.homes, Interruptions: s.interruptions, Resizes: s.resizes,
		}
	}
	return v
}

// describedPlans implements explain.Plans.
type describedPlans struct{ c *Core }

// Request implements explain.Plans.
func (p describedPlans) Request() *autoscaler.Request {
	req, _ := p.c.newRequest()
	return req
}

// Eligible implements explain.Plans.
func (p describedPlans) Eligible(uid types.UID) (now bool, from time.Time) {
	e := p.c.eligible(p.c.pods[uid])
	return e.now, e.from
}

// describedGroups implements explain.Groups: it describes groups as of the core's turn.
type describedGroups struct {
	*nodegroups.Machine
	turn *lifecycle.Turn
}

// Describe implements explain.Groups.
func (g describedGroups) Describe(group string) (nodegroups.Description, bool) {
	return g.Machine.Describe(g.turn, group)
}
