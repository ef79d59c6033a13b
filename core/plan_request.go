package core

import (
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle/launching"
	"github.com/berthproject/berth/core/lifecycle/planning"
	"github.com/berthproject/berth/core/lifecycle/podgroups"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/record"
)

// This file asks for plans: when one is due, and what it is to know.

// requestPlan asks for a plan if one is due, for the pods that were tried and found no
// node. podsLeft says that this Step ended with pods still to be tried: then a plan that
// is due waits for them, though not for ever (planning.Machine.Ready).
func (c *Core) requestPlan(podsLeft bool) {
	s := &c.scale
	if c.headroom.WantsPlan() {
		s.planning.Want(c.turn.Now)
	}
	if !s.planning.Ready(c.turn.Now, podsLeft) {
		return
	}
	s.launches.PlanRequested()
	s.groups.LookAtLaunched(c.turn)
	req, early := c.newRequest()
	s.lookedFor = req.ScaleDown != nil && req.ScaleDown.Consolidate != nil
	req.Whole = c.headroom.Whole()
	for _, pod := range req.Pending {
		c.pods[pod.UID].Planned = true
	}
	for i := range req.Gangs {
		for _, pod := range req.Gangs[i].Members {
			c.pods[pod.UID].Planned = true
		}
	}
	s.planning.Request(c.turn, req)
	// Places are looked through again before the next plan.
	s.placesChecked = false
	c.noteRequested(req)
	for _, p := range early {
		c.wantPlan(p) // the request has answered for all who wanted a plan so far
	}
}

// newRequest returns what a plan made now is to know, and the pods for which it is too early
// to buy nodes. It changes nothing.
func (c *Core) newRequest() (req *autoscaler.Request, early []*record.Pod) {
	s := &c.scale
	req = &autoscaler.Request{
		Now: c.turn.Now, ServerNow: c.turn.ServerNow(), Limits: c.cfg.Autoscale.Limits, Readiness: c.cfg.Autoscale.Readiness,
		Balancing: c.cfg.Autoscale.Balancing, Conditions: s.groups.Conditions(c.turn.Now), Places: c.reservation.Places(),
	}
	if !c.cfg.Autoscale.DisableScaleDown {
		req.ScaleDown = c.scaleDownRequest()
	}
	var asking []*record.Pod
	// In the order of scheduling.
	for _, item := range c.queue.Rejected() {
		p := c.pods[item.Pod().UID]
		// A pod that waits for a node that is coming needs no other.
		if p.HasNodeToWaitFor(c.state) || p.Compared.Preempts() {
			continue
		}
		switch e := c.eligible(p); {
		case e.now:
			req.Pending = append(req.Pending, item.Pod())
			if c.reservation.Asks(item.Pod().UID) {
				asking = append(asking, p)
			}
		case !e.from.IsZero():
			early = append(early, p)
		}
	}
	var tooEarly []*record.Pod
	req.Gangs, tooEarly = gangs{c}.toPlan()
	early = append(early, tooEarly...)
	for i := range req.Gangs {
		for _, pod := range req.Gangs[i].Members {
			if c.reservation.Asks(pod.UID) {
				asking = append(asking, c.pods[pod.UID])
			}
		}
	}
	if len(req.Pending) > 0 {
		// Only pending pods have a use for nodes on their way out.
		req.Recallable = s.deletions.Recallable(c.state)
	}
	c.mustNotBuy(req, asking)
	c.capLaunches(req)
	if c.reservation.AnySpare() {
		req.Spare = map[string]int{}
		for _, g := range c.state.Groups() {
			if n := c.reservation.Spare(g.ID); n > 0 {
				req.Spare[g.ID] = n
			}
		}
	}
	return req, early
}

// scaleDownRequest returns the part of a request that asks for nodes that could be removed.
func (c *Core) scaleDownRequest() *autoscaler.ScaleDown {
	out := &autoscaler.ScaleDown{Rules: c.cfg.Autoscale.Removal, Displaced: c.scale.homes.Displaced(c.state), Leaving: map[string]int{}}
	for _, g := range c.state.Groups() {
		if n := c.scale.deletions.Planned(g.ID); n > 0 {
			out.Leaving[g.ID] = n
		}
	}
	out.Replacing = c.scale.consolidation.Replacing()
	out.Consolidate = c.consolidateRequest()
	return out
}

// keepPlaces has places released whose nodes aren't coming any more, when the provider has
// told of its groups and before each plan.
func (c *Core) keepPlaces() {
	// It costs a survey, so it isn't done in each Step.
	beforePlan := !c.scale.placesChecked && c.scale.planning.State(c.turn.Now) == planning.Due
	if !c.reservation.Waits() || !c.scale.groupsTold && !beforePlan {
		return
	}
	c.scale.groupsTold, c.scale.placesChecked = false, true
	releaseLost(c)
}

// releaseLost has places released whose nodes aren't coming any more.
func releaseLost(c *Core) {
	c.reservation.ReleaseLost(c.turn, func(group string) int {
		if in := c.survey()[group]; in != nil {
			return in.Unregistered
		}
		return 0
	}, func(name string) bool {
		n := c.state.NodeByName(name)
		return n != nil && (c.usable(n.NodeInfo) || c.cfg.Autoscale.Readiness.Starting(n.NodeInfo, c.state.Group(n.Group), c.turn.ServerNow()))
	})
}

// survey returns what is coming, by group, for decisions about pods and their places, which
// don't change it: inputs, time and orders do. It costs O(nodes) at the first call after one.
func (c *Core) survey() map[string]*scaleup.Coming {
	if c.scale.survey == nil {
		c.scale.survey = scaleup.Survey(c.state, c.scale.groups.Conditions(c.turn.Now), &c.cfg.Autoscale.Readiness, c.turn.ServerNow())
	}
	return c.scale.survey
}

// capLaunches says in a request how many nodes may be coming.
// Without launch control there is nothing to say.
func (c *Core) capLaunches(req *autoscaler.Request) {
	s := &c.scale
	if !s.launches.Limits() {
		return
	}
	coming := s.groups.Coming(c.turn)
	if n := s.launches.Cap(c.turn.Now, coming); n != launching.Unlimited {
		req.Limits.MaxNodesLaunching = n
	}
	for _, g := range c.state.Groups() {
		if n := s.launches.GroupCap(c.turn.Now, g.ID, coming); n != launching.Unlimited {
			condition := req.Conditions[g.ID]
			condition.MaxLaunching = n
			req.Conditions[g.ID] = condition
		}
	}
}

// advanceLaunches takes launches further, and asks for a plan as soon as a group has room
// that had none for the last.
// It asks nothing in most Steps: MayHaveRoom is cheap.
func (c *Core) advanceLaunches() {
	s := &c.scale
	s.launches.Advance(c.turn)
	if s.launches.MayHaveRoom(c.turn.Now) && s.launches.HasRoom(c.turn.Now, s.groups.Coming(c.turn)) {
		s.planning.Want(c.turn.Now)
	}
}

// gangs says for which pod groups nodes may be bought, and whether what a plan has for one still holds. What must hold: the
// nodes of a pod group are ordered all together or not at all.
// It has no state of its own: its methods are the core's about pod groups.
type gangs struct{ c *Core }

// toPlan returns the pod groups for which nodes may be bought, and the members for which it is too
// early. A group waits with all members for the one that waits the longest; one of which a member has
// others leave a node for it isn't planned for.
func (x gangs) toPlan() (out []autoscaler.Gang, early []*record.Pod) {
	for _, g := range x.c.queue.RejectedGroups() {
		object := x.c.state.PodGroup(g.Key())
		// Without its object it isn't known how many members are needed.
		if object == nil {
			continue
		}
		may, waiting := x.eligibleMembers(g)
		if early = append(early, waiting...); !may {
			continue
		}
		gang := autoscaler.Gang{Key: g.Key(), MinCount: podgroups.MinCount(object), Topologies: cluster.RequiredTopologies(object), Members: make([]*cluster.Pod, 0, len(g.Members()))}
		for _, item := range g.Members() {
			gang.Members = append(gang.Members, item.Pod())
		}
		out = append(out, gang)
	}
	return out, early
}

// eligibleMembers reports whether nodes may be bought for all members of a group, and returns those for
// which they may be later.
// One member that may not keeps all others from it.
func (x gangs) eligibleMembers(g *queue.Group) (may bool, early []*record.Pod) {
	may = true
	for _, item := range g.Members() {
		p := x.c.pods[item.Pod().UID]
		e := x.c.eligible(p)
		if may = may && e.now && !p.HasNodeToWaitFor(x.c.state); !e.now && !e.from.IsZero() {
			early = append(early, p)
		}
	}
	return may, early
}
