package core

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/record"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/core/weighing"
)

// This file decides about pods that could have others leave a node for them: whether they
// preempt at once, or ask for a place on a node first, by the policy of their profile
// (core/weighing). Who asks waits for the next plan (core/lifecycle/reservation), which is
// the only one that knows what coming nodes take and what nodes can be bought:
//
//	policy         asks                     bought for     then waits at most
//	preempt-first  when a node is coming    no             until that node can't come any more
//	buy-first      when nodes may be bought yes            MaxWait, LaunchTimes launches
//	               for it
//	cheapest       as above                 if that costs  as above
//	                                        less
//
// A pod that has asked, or had a place, and has it no more preempts at its next attempt,
// whatever the policy. What must hold: a pod asks once each time that it could preempt, and
// every asking ends. Without an autoscaler nobody asks.

// weigh implements scheduler.Scheduler.Weigh.
func (c *Core) weigh(pod *cluster.Pod, best *engine.Candidate) *weighing.Result {
	if c.cfg.Autoscale == nil {
		return nil
	}
	p, cfg := c.pods[pod.UID], &c.sched.Profile(pod).Weighing
	a := &weighing.Result{Policy: policy(cfg), Chosen: weighing.Preempts, Preempt: c.preemptionCost(c.state.Node(best.Node).Name, &best.Victims, &cfg.Costs)}
	may := c.eligible(p)
	switch {
	case !p.Weighing.Since.IsZero():
		a.Why = "the node that it waited for is not coming, or not in time"
		if last := p.Weighing.Result; last != nil {
			a.Node = last.Node
			if last.Chosen == weighing.Preempts {
				a.Why = last.Why
			}
		}
	case !c.scale.groups.Known():
		a.Why = "the node groups are not known yet"
	case !may.now && (a.Policy == weighing.PreemptFirst || may.from.IsZero()):
		a.Why = "no node is added for it, or not yet"
	case a.Policy == weighing.PreemptFirst && scaleup.Launching(c.survey()) == 0:
		a.Why = "no node is being added"
	default:
		a.Chosen, a.Why = weighing.Asks, "the next plan decides whether to add a node for it"
	}
	return a
}

// policy returns the policy of a profile; of one that was made without any the default.
func policy(cfg *weighing.Config) weighing.Policy {
	if cfg.Policy == "" {
		return weighing.PreemptFirst
	}
	return cfg.Policy
}

// policyOf returns the policy of a pod's profile.
func (c *Core) policyOf(pod *cluster.Pod) weighing.Policy {
	return policy(&c.sched.Profile(pod).Weighing)
}

// maxAsking is how long a pod asks at most. By preempt-first it waits for one plan, which is
// made within a scan interval, or within two where pods are always left to try.
func (c *Core) maxAsking(pod *cluster.Pod) time.Duration {
	if c.policyOf(pod) == weighing.PreemptFirst {
		return 2 * c.cfg.Autoscale.ScanInterval
	}
	return c.sched.Profile(pod).Weighing.MaxWait
}

// noteAsking records what a decision that found no node for a pod means for its place:
// the pod asks for one, waits for its own as before, or has none.
func (c *Core) noteAsking(p *record.Pod, item *queue.Item, d *scheduler.Decision) {
	pod := item.Pod()
	switch {
	case d.Asks():
		p.Weighing = record.Weighing{Asked: true, Since: c.turn.Now, Result: d.Weighed}
		c.reservation.Ask(c.turn, pod.UID, c.turn.Now.Add(c.maxAsking(pod)))
		if e := c.eligible(p); e.now {
			c.scale.planning.Want(c.turn.Now)
		} else {
			c.scale.planning.Want(e.from)
		}
	case !c.reservation.WaitsFor(pod.UID):
		if !p.Weighing.Since.IsZero() {
			p.Planned = false // what was planned for it holds no more
		}
		p.Weighing = record.Weighing{}
	}
}

// forgetAsking lets a pod ask again, the next time that it could preempt, unless it has or
// asks for a place still.
func (c *Core) forgetAsking(p *record.Pod) {
	if !c.reservation.WaitsFor(p.Parsed.UID) {
		p.Weighing = record.Weighing{}
	}
}

// mustNotBuy says in a request that no nodes are bought for those of the pods that ask which
// would rather preempt.
func (c *Core) mustNotBuy(req *autoscaler.Request, asking []*record.Pod) {
	for _, p := range asking {
		if c.policyOf(p.Parsed) != weighing.PreemptFirst {
			continue
		}
		if req.NotFor == nil {
			req.NotFor = map[types.UID]bool{}
		}
		req.NotFor[p.Parsed.UID] = true
	}
}

// noteRequested records which pods that ask are in a request.
func (c *Core) noteRequested(req *autoscaler.Request) {
	if !c.reservation.AnyAsks() {
		return
	}
	note := func(pods []*cluster.Pod) {
		for _, pod := range pods {
			if c.reservation.Asks(pod.UID) {
				c.pods[pod.UID].Weighing.Request = req.Number
			}
		}
	}
	note(req.Pending)
	for i := range req.Gangs {
		note(req.Gangs[i].Members)
	}
}

// join gives pods the room that a plan has found on a node that is coming.
func (c *Core) join(j *autoscaler.Join) {
	if !hasNodeOf(c.state, j) {
		return
	}
	var pods []types.UID
	for _, uid := range j.Pods {
		if c.waits(uid) {
			pods = append(pods, uid)
		}
	}
	for _, uid := range c.reservation.Join(c.turn, j, pods) {
		c.given(uid, &weighing.Node{Group: j.Group, Name: j.Node}, weighing.Waits)
	}
}

// hasNodeOf reports whether the node of a join is what it was, if it was registered.
func hasNodeOf(s *cluster.State, j *autoscaler.Join) bool {
	n := s.NodeByName(j.Node)
	return j.Node == "" || n != nil && n.Group == j.Group
}

// given records a place that a pod was given. It doesn't ask for another when it loses
// it. If it had asked, it waits for a limited time, and the ledger says for what.
func (c *Core) given(uid types.UID, n *weighing.Node, chosen weighing.Choice) {
	p := c.pods[uid]
	w := &p.Weighing
	if !w.Asked {
		w.Since = c.turn.Now
		return
	}
	cfg := &c.sched.Profile(p.Parsed).Weighing
	launch := c.scale.launches.Times(n.Group).Median
	if p.Parsed.Group != nil { // all members wait for as long, and one record is of all of them
		if policy(cfg) != weighing.PreemptFirst {
			c.reservation.Limit(uid, cfg.Until(w.Since, c.turn.Now, 0))
		}
		return
	}
	if policy(cfg) != weighing.PreemptFirst {
		c.reservation.Limit(uid, cfg.Until(w.Since, c.turn.Now, launch))
	}
	cost := cfg.Costs.NewNode(n.Group, n.Price, n.Share, c.worth(p.Parsed), launch)
	cost.Name = n.Name
	w.Result = &weighing.Result{Policy: policy(cfg), Chosen: chosen, Preempt: w.Result.Preempt, Node: cost}
	c.decideWeighed(p)
}

// decideWeighed enters what a pod waits for into the ledger, with what preempting would have
// cost.
func (c *Core) decideWeighed(p *record.Pod) {
	a := p.Weighing.Result
	c.turn.Decide(step.Decision{Kind: step.Weighed, Pod: p.Parsed.Name(), Group: a.Node.Group, Node: a.Node.Name,
		Reason: string(a.Chosen) + " by " + string(a.Policy), Profile: p.Parsed.Object.Spec.SchedulerName, Weighed: a})
}

// answerAsking lets the pods preempt at their next attempt that asked for a place, that a
// plan was made for, and that it has no place for. kept are the pods that need nothing but
// the nodes that were ordered by the plan, whether or not one is for them.
func (c *Core) answerAsking(plan *autoscaler.Plan, kept map[types.UID]bool) {
	if !c.reservation.AnyAsks() {
		return
	}
	why := map[types.UID]string{}
	later := map[types.UID]bool{}
	for _, n := range plan.NoHelp {
		for _, uid := range n.Pods {
			later[uid] = n.Later
			why[uid] = "no node group can help: " + strings.Join(n.Reasons, ", ")
		}
	}
	var released []types.UID
	for _, uid := range c.reservation.Asking() {
		p := c.pods[uid]
		if p.Weighing.Request != plan.Request || kept[uid] {
			continue
		}
		unplanned := plan.Unplanned > 0 && why[uid] == ""
		if (unplanned || later[uid]) && c.policyOf(p.Parsed) != weighing.PreemptFirst {
			continue // the next plan may come to it, or buy it a node
		}
		a := *p.Weighing.Result
		if a.Chosen != weighing.Preempts { // it wasn't declined
			a.Chosen, a.Why = weighing.Preempts, "no upcoming node fits it"
			if why[uid] != "" {
				a.Why = why[uid]
			} else if a.Policy != weighing.PreemptFirst {
				a.Why = "no node was added for it"
			}
		}
		p.Weighing.Result = &a
		c.reservation.ReleasePod(c.turn, uid)
		released = append(released, uid)
	}
	gangs{c}.askedInVain(released)
}

// decline leaves out of a proposal the nodes of which all pods would rather preempt, by
// Cheapest, and returns the proposal that is left. It is the one that it was given when none
// is left out.
func (c *Core) decline(up *autoscaler.ScaleUp) *autoscaler.ScaleUp {
	if !c.reservation.AnyAsks() || up.Gang != "" { // those of pod groups are weighed as a whole
		return up
	}
	declined := map[types.UID]bool{}
	out := *up
	out.Bins = slices.DeleteFunc(slices.Clone(up.Bins), func(bin []types.UID) bool {
		costs := c.costsOf(up.Group, bin)
		if costs == nil || !costs.preemptingIsCheaper() {
			return false
		}
		for i, uid := range bin {
			declined[uid] = true
			a := *c.pods[uid].Weighing.Result
			a.Chosen, a.Why, a.Node = weighing.Preempts, costs.why, costs.nodes[i]
			c.pods[uid].Weighing.Result = &a
		}
		return true
	})
	if len(declined) == 0 {
		return up
	}
	out.Nodes -= len(up.Bins) - len(out.Bins)
	out.Pods = slices.DeleteFunc(slices.Clone(up.Pods), func(uid types.UID) bool { return declined[uid] })
	return &out
}

// weigh is Core.weigh for a pod group: implements scheduler.Scheduler.WeighGroup. All of its members ask, or none.
func (x gangs) weigh(members []scheduler.Member, victims *framework.Victims) *weighing.Result {
	c, first := x.c, members[0].Pod
	if c.cfg.Autoscale == nil || !c.mode.decidesGroups() {
		return nil
	}
	cfg := &c.sched.Profile(first).Weighing
	a := &weighing.Result{Policy: policy(cfg), Chosen: weighing.Preempts, Preempt: c.preemptionCost("", victims, &cfg.Costs)}
	may, last := true, record.Weighing{}
	for i := range members {
		p := c.pods[members[i].Pod.UID]
		may = may && c.eligible(p).now && !p.HasNodeToWaitFor(c.state)
		if !p.Weighing.Since.IsZero() {
			last = p.Weighing
		}
	}
	switch {
	case !last.Since.IsZero():
		a.Why = "the nodes that it waited for are not coming, or not in time"
		if last.Result != nil {
			a.Node = last.Result.Node
			if last.Result.Chosen == weighing.Preempts {
				a.Why = last.Result.Why
			}
		}
	case !c.scale.groups.Known():
		a.Why = "the node groups are not known yet"
	case !may:
		a.Why = "no node is added for it, or not yet"
	case a.Policy == weighing.PreemptFirst && scaleup.Launching(c.survey()) == 0:
		a.Why = "no node is being added"
	default:
		a.Chosen, a.Why = weighing.Asks, "the next plan decides whether to add nodes for it"
	}
	return a
}

// noteAsking is Core.noteAsking for all members of a pod group without a place; asks is nil when they don't ask.
func (x gangs) noteAsking(items []*queue.Item, asks *weighing.Result) {
	c := x.c
	for _, item := range items {
		pod := item.Pod()
		p := c.pods[pod.UID]
		switch {
		case asks != nil:
			p.Weighing = record.Weighing{Asked: true, Since: c.turn.Now, Result: asks}
			c.reservation.Ask(c.turn, pod.UID, c.turn.Now.Add(c.maxAsking(pod)))
		case !c.reservation.WaitsFor(pod.UID):
			if !p.Weighing.Since.IsZero() {
				p.Planned = false // what was planned for it holds no more
			}
			p.Weighing = record.Weighing{}
		}
	}
	if asks != nil {
		c.scale.planning.Want(c.turn.Now)
	}
}

// asking returns the members of a pod group, as namespace/name, that ask for a place, in the order of scheduling.
func (x gangs) asking(name string) (out []*record.Pod) {
	group := x.c.queue.Group(cluster.PodGroupNamed(name))
	if group == nil || !x.c.reservation.AnyAsks() {
		return nil
	}
	for _, item := range group.Members() {
		if x.c.reservation.Asks(item.Pod().UID) {
			out = append(out, x.c.pods[item.Pod().UID])
		}
	}
	return out
}

// declines reports whether a pod group would rather preempt than have the nodes that a plan buys for it, by Cheapest. The
// result is noted for its members.
func (x gangs) declines(g *autoscaler.GangPlan, ups []autoscaler.ScaleUp) bool {
	members := x.asking(g.Gang)
	if g.Nodes == 0 || len(members) == 0 || x.c.policyOf(members[0].Parsed) != weighing.Cheapest {
		return false
	}
	node, priced := x.groupNode(g, ups, members)
	a := *members[0].Weighing.Result
	costs := binCosts{preempt: a.Preempt.Cost, node: node.Cost, priced: priced}
	if !costs.preemptingIsCheaper() {
		return false
	}
	a.Chosen, a.Why, a.Node = weighing.Preempts, costs.why, node
	for _, p := range members {
		p.Weighing.Result = &a
	}
	return true
}

// weighed returns what a pod group waits for that has asked and for which a plan has places, nil for another; it is noted
// for its members.
func (x gangs) weighed(g *autoscaler.GangPlan, ups []autoscaler.ScaleUp) *weighing.Result {
	members := x.asking(g.Gang)
	if g.Placed == 0 || len(members) == 0 {
		return nil
	}
	a := *members[0].Weighing.Result
	a.Chosen, a.Why = weighing.Waits, ""
	if g.Nodes > 0 {
		a.Chosen = weighing.Buys
	}
	a.Node, _ = x.groupNode(g, ups, members)
	for _, p := range members {
		p.Weighing.Result = &a
	}
	return &a
}

// askedInVain wakes the pod groups of which members have asked for a place and have none now, nor ask for one still.
func (x gangs) askedInVain(released []types.UID) {
	for _, uid := range released {
		if item := x.c.queue.Get(uid); item != nil && item.WaitsWithGroup() != nil {
			x.c.queue.ActivateGroup(item.WaitsWithGroup())
		}
	}
}
