package core

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/candidates"
	"github.com/berthproject/berth/core/lifecycle/consolidation"
	"github.com/berthproject/berth/core/lifecycle/draining"
	"github.com/berthproject/berth/core/lifecycle/homes"
	"github.com/berthproject/berth/core/lifecycle/launching"
	"github.com/berthproject/berth/core/lifecycle/nodedeletion"
	"github.com/berthproject/berth/core/lifecycle/nodegroups"
	"github.com/berthproject/berth/core/lifecycle/planning"
	"github.com/berthproject/berth/core/lifecycle/staying"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/core/step"
)

// The autoscaler's side of the core: it asks for plans, and hands what comes back to
// the node groups and the node deletions, which check it against the cluster as it now
// is. Nothing of this happens when Berth only schedules (Config.Autoscale is nil).

// autoscaling is what the core has for the autoscaler.
type autoscaling struct {
	launches   *launching.Machine
	groups     *nodegroups.Machine
	staying    *staying.Machine
	candidates *candidates.Machine
	deletions  *nodedeletion.Machine
	homes      *homes.Machine
	planning   *planning.Machine
	// consolidation is at rest for good unless consolidations are wanted. lookedFor says that
	// the open request asks for one.
	consolidation *consolidation.Machine
	lookedFor     bool
	whatIf        *scaledown.WhatIf // for people who ask; nil until somebody does
	// overBudget are the nodes whose time had come when the last plan was committed and that a
	// node budget kept, with why; nil for none.
	overBudget map[string]string
	// survey is what is coming since the last input, or since the Step began; nil until it is
	// asked for (Core.survey).
	survey map[string]*scaleup.Coming
	// groupsTold says that the provider has told of its groups since places were last checked.
	groupsTold bool
	// placesKept says that places were checked since a plan was last asked for: one that is due
	// may wait for many Steps.
	placesKept bool
}

// newAutoscaling returns the machines of a core. Beside another scheduler no room can be kept
// for evicted pods: that one doesn't know of it.
func newAutoscaling(a *Autoscale, sched *scheduler.Scheduler, external bool) autoscaling {
	s := autoscaling{staying: staying.New()}
	s.homes = homes.New(homes.Config{Time: a.HomeTime, NoRoom: a.NoHomes || external}, sched)
	s.candidates = candidates.New(candidates.Config{
		UnneededTime: a.UnneededTime, UnreadyTime: a.UnreadyTime, KeepUnready: a.Removal.KeepUnready,
		TTL: a.CandidateTTL, MaxBulk: a.MaxBulkSoftTaints, BulkTime: a.MaxBulkSoftTaintTime,
	})
	s.deletions = nodedeletion.New(nodedeletion.Config{
		MaxDeletions: a.MaxScaleDown, MaxDrains: a.MaxDrain, DeleteDelayAfterTaint: a.DeleteDelayAfterTaint,
		KeepSchedulable: a.KeepSchedulable, EvictDaemonPods: a.EvictDaemonPods, KeepDaemonPods: a.KeepDaemonPods,
		Drain:                draining.Config{Tiers: a.DrainPriority, MaxGrace: a.MaxGracefulTermination, MaxEviction: a.MaxPodEvictionTime, Surge: a.Surge},
		Rules:                a.Removal,
		DeletionDelayTimeout: a.DeletionDelayTimeout, DeletionBatchInterval: a.DeletionBatchInterval, LeaveResumed: a.DisableScaleDown,
	})
	if a.MaxNodesLaunching == 0 {
		// Recordings of versions without launch control have the limit there.
		a.MaxNodesLaunching = launching.Limit(a.Limits.MaxNodesLaunching)
	}
	s.launches = launching.New(launching.Config{Cluster: a.MaxNodesLaunching, Group: a.MaxNodesLaunchingPerGroup, Patience: a.MaxProvisionTime})
	s.groups = nodegroups.New(nodegroups.Config{
		DelayAfterAdd: a.DelayAfterAdd, DelayAfterDelete: a.DelayAfterDelete, DelayAfterFailure: a.DelayAfterFailure, ClusterDelays: a.ClusterDelays,
		MaxProvisionTime: a.MaxProvisionTime, ForceDeleteUnregistered: a.ForceDeleteUnregistered, Limits: a.Limits, Readiness: a.Readiness,
		InitialBackoff: a.InitialBackoff, MaxBackoff: a.MaxBackoff, BackoffReset: a.BackoffReset,
	}, s.deletions, s.launches)
	s.deletions.Connect(s.groups, s.candidates, s.homes)
	s.consolidation = consolidation.New(consolidation.Config{Settle: a.UnneededTime, Patience: a.MaxProvisionTime})
	s.planning = planning.New(planning.Config{ScanInterval: a.ScanInterval, OnDemand: !a.DisableFrequentLoops})
	return s
}

// DefaultAutoscale returns Cluster Autoscaler's defaults. Flags, scenarios and tests start
// from it: in an Autoscale, zero is a value like any other.
func DefaultAutoscale() Autoscale {
	return Autoscale{
		Expander:          expander.LeastWasteName,
		ScanInterval:      10 * time.Second,
		MaxBinpackingTime: 5 * time.Minute,

		MaxNodeGroupBinpackingDuration: 10 * time.Second,

		UnneededTime: 10 * time.Minute,
		UnreadyTime:  20 * time.Minute,
		Removal: autoscaler.RemovalRules{
			UtilizationThreshold: 0.5, GPUUtilizationThreshold: 0.5,
			SkipSystemPods: true, SystemPodTimeout: time.Hour, SkipLocalStorage: true, SkipCustomControllerPods: true,
			RecheckAfter: 5 * time.Minute,
		},
		SimulationTimeout:    30 * time.Second,
		MaxBulkSoftTaints:    10,
		MaxBulkSoftTaintTime: 3 * time.Second,

		DelayAfterAdd:         10 * time.Minute,
		DelayAfterFailure:     3 * time.Minute,
		DeleteDelayAfterTaint: 5 * time.Second,
		MaxScaleDown:          10,

		ConsolidationThreshold: 0.5,

		MaxDrain:           1,
		MaxPodEvictionTime: 2 * time.Minute,

		MaxGracefulTermination: 10 * time.Minute,
		DeletionDelayTimeout:   2 * time.Minute,
		HomeTime:               5 * time.Minute,

		MaxProvisionTime: 15 * time.Minute,
		InitialBackoff:   5 * time.Minute,
		MaxBackoff:       30 * time.Minute,
		BackoffReset:     3 * time.Hour,
		Limits: autoscaler.Limits{
			MaxNodesPerScaleUp: 1000, MaxTotalUnready: 45, OKTotalUnready: 3,
			Totals: []autoscaler.Total{{Resource: v1.ResourceCPU, Max: 320000}, {Resource: v1.ResourceMemory, Max: 6400000 << 30}},
		},
		PriorityCutoff: -10,
		Readiness:      autoscaler.Readiness{StartupTime: 15 * time.Minute},
		Balancing:      autoscaler.Balancing{MemoryDifference: 0.015, AllocatableDifference: 0.05, FreeDifference: 0.05},
	}
}

// machines returns the autoscaler's lifecycle machines; none when Berth only schedules.
func (s *autoscaling) machines() []lifecycle.Machine {
	if s.groups == nil {
		return nil
	}
	return []lifecycle.Machine{s.launches, s.groups, s.staying, s.candidates, s.deletions, s.homes, s.consolidation, s.planning}
}

// nextWake returns when the autoscaler next has something to do by itself.
func (s *autoscaling) nextWake() time.Time {
	if !s.groups.Known() {
		return time.Time{} // nothing goes on before the provider has told of its groups
	}
	next := s.homes.NextWake()
	for _, m := range []lifecycle.Machine{s.launches, s.candidates, s.deletions, s.planning} {
		next = lifecycle.Earliest(next, m.NextWake())
	}
	return next
}

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
	s.launches.Planned()
	req, early := c.newRequest()
	s.lookedFor = req.ScaleDown != nil && req.ScaleDown.Consolidate != nil
	req.Whole = c.headroom.Whole()
	for _, pod := range req.Pending {
		c.pods[pod.UID].planned = true
	}
	s.planning.Request(c.turn, req)
	s.placesKept = false
	c.noteRequested(req)
	for _, p := range early {
		c.wantPlan(p) // the request has answered for all who wanted a plan so far
	}
}

// newRequest returns what a plan made now is to know, and the pods for which it is too early
// to buy nodes. It changes nothing.
func (c *Core) newRequest() (req *autoscaler.Request, early []*pod) {
	s := &c.scale
	req = &autoscaler.Request{
		Now: c.turn.Now, ServerNow: c.turn.ServerNow(), Limits: c.cfg.Autoscale.Limits, Readiness: c.cfg.Autoscale.Readiness,
		Balancing: c.cfg.Autoscale.Balancing, Conditions: s.groups.Conditions(c.turn.Now), Places: c.reservation.Places(),
	}
	if !c.cfg.Autoscale.DisableScaleDown {
		req.ScaleDown = c.scaleDownRequest()
	}
	var asking []*pod
	for _, item := range c.queue.Rejected() {
		p := c.pods[item.Pod().UID]
		if c.hasNodeToWaitFor(p) {
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
	beforePlan := !c.scale.placesKept && c.scale.planning.State(c.turn.Now) == planning.Due
	if !c.reservation.Waits() || !c.scale.groupsTold && !beforePlan {
		return
	}
	c.scale.groupsTold, c.scale.placesKept = false, true
	c.reservation.Keep(c.turn, func(group string) int {
		if in := c.survey()[group]; in != nil {
			return in.Unregistered
		}
		return 0
	}, func(name string) bool {
		n := c.state.NodeByName(name)
		return n != nil && (c.usable(n.NodeInfo) || c.cfg.Autoscale.Readiness.Starting(n.NodeInfo, c.template(n.NodeInfo), c.turn.ServerNow()))
	})
}

// survey returns what is coming, by group, for decisions about pods and their places, which
// don't change it: only inputs and time do. It costs O(nodes) at the first call after one.
func (c *Core) survey() map[string]*scaleup.Coming {
	if c.scale.survey == nil {
		c.scale.survey = scaleup.Survey(c.state, c.scale.groups.Conditions(c.turn.Now), &c.cfg.Autoscale.Readiness, c.turn.ServerNow())
	}
	return c.scale.survey
}

// capLaunches says in a request how many nodes may be coming.
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

// holdBack has launch control remember, after a plan that found pods in need of nodes, which
// groups have no room for launches.
func (c *Core) holdBack(plan *autoscaler.Plan) {
	s := &c.scale
	if !s.launches.Limits() || len(plan.NoHelp)+len(plan.ScaleUps) == 0 {
		return
	}
	var groups []string
	for _, g := range c.state.Groups() {
		groups = append(groups, g.ID)
	}
	s.launches.Held(c.turn.Now, groups, s.groups.Coming(c.turn))
}

// advanceLaunches takes launches further, and asks for a plan as soon as a group has room
// that had none for the last.
func (c *Core) advanceLaunches() {
	s := &c.scale
	s.launches.Advance(c.turn)
	if s.launches.MayHaveRoom(c.turn.Now) && s.launches.HasRoom(c.turn.Now, s.groups.Coming(c.turn)) {
		s.planning.Want(c.turn.Now)
	}
}

// groupsSet hands what the provider tells of its groups to the node deletions before the
// node groups: the groups' targets count the deletions that stay in doubt.
func (c *Core) groupsSet(in step.GroupsSet) {
	if c.cfg.Autoscale == nil {
		return // groups are of no interest to a scheduler
	}
	c.scale.deletions.GroupsSet(c.turn, in)
	c.scale.groups.GroupsSet(c.turn, in)
	c.scale.planning.GroupsKnown(c.turn.Now)
	c.scale.groupsTold = true
}

// planMade commits what still holds of a plan.
func (c *Core) planMade(in step.PlanMade) {
	if c.cfg.Autoscale == nil || !c.scale.planning.PlanMade(c.turn, in.Plan) {
		return
	}
	before := len(c.turn.Ready.ScaleUps)
	c.headroom.WholePlanned(c.turn, in.Plan.Whole && c.scale.groups.HasRoom(c.turn, in.Plan.ScaleUps))
	for i := range in.Plan.Joins {
		c.join(&in.Plan.Joins[i])
	}
	kept := map[types.UID]bool{}
	for i := range in.Plan.ScaleUps {
		helped := c.commitScaleUp(&in.Plan.ScaleUps[i])
		if !c.reservation.AnyAsks() {
			continue
		}
		for _, uid := range helped {
			kept[uid] = true
		}
	}
	c.answerAsking(in.Plan, kept)
	for _, x := range in.Plan.NoHelp {
		for _, uid := range x.Pods {
			if !c.reservation.Asks(uid) { // answerAsking has answered who asks
				c.reservation.Free(c.turn, uid) // what is coming doesn't help it any more
			}
		}
	}
	for _, x := range c.mayCancel(in.Plan) {
		c.reservation.Cancelled(x.Group, c.scale.groups.Cancel(c.turn, x.Group, min(x.Nodes, c.reservation.Spare(x.Group))))
	}
	if n := in.Plan.Unplanned; n > 0 {
		c.turn.Decide(step.Decision{Kind: step.PlanCut, Reason: fmt.Sprintf("the plan had taken long enough; %d pods are left to the next", n)})
		if len(c.turn.Ready.ScaleUps) > before { // else the next would be no other
			c.scale.planning.Retry(c.turn.Now)
		}
	}
	c.holdBack(in.Plan)
	c.reportNoHelp(in.Plan)
	if !c.cfg.Autoscale.DisableScaleDown {
		c.scale.staying.CommitPlan(c.turn, in.Plan)
	}
	// With --scale-down-enabled=false a plan has no removals, and what candidates there
	// were before a restart are needed.
	due := withConsolidation(c.commitConsolidation(in.Plan), c.scale.candidates.CommitPlan(c.turn, in.Plan))
	c.scale.deletions.Begin(c.turn, c.withinNodeBudgets(due))
}

// mayCancel returns what of the nodes that nobody needs may be given up: none where nodes
// are never removed, nor where another scheduler may already have put a pod on one of them.
func (c *Core) mayCancel(plan *autoscaler.Plan) []autoscaler.GroupNodes {
	if c.cfg.Autoscale.DisableScaleDown || c.cfg.ExternalScheduler {
		return nil
	}
	return plan.Unneeded
}

// commitScaleUp orders the nodes of a proposal for those of its pods that have no node
// still and don't rather preempt, and emits TriggeredScaleUp for each that has a place on
// what is ordered. It returns these.
func (c *Core) commitScaleUp(up *autoscaler.ScaleUp) (helped []types.UID) {
	if up = c.decline(up); up.Nodes == 0 {
		return nil
	}
	growth, ok := c.scale.groups.CommitScaleUp(c.turn, up, c.waits)
	if !ok {
		return nil
	}
	c.scale.consolidation.Grew(c.turn.Now)
	c.reservation.Ordered(c.turn, up.Group, growth.Bins)
	c.bought(up.Group, growth.Bins)
	asked := c.scale.groups.LastAsked(up.Group)
	for _, uid := range up.Pods {
		switch p := c.stillPending(uid); {
		case p == nil || p.parsed.StandsIn():
		case growth.Without[uid]:
			c.reporting.ScaleUpOutdated(&p.reports)
		default:
			helped = append(helped, uid)
			p.asked = asked
			c.reporting.TriggeredScaleUp(c.turn, &p.reports, p.parsed.Object, growth.String())
		}
	}
	return helped
}

// reportNoHelp reports NotTriggeredScaleUp, with the reasons, for those pods that no node
// group would help and that have no node still, in the order in which they were queued.
func (c *Core) reportNoHelp(plan *autoscaler.Plan) {
	c.headroom.Planned()
	why := map[types.UID]string{}
	var items []*queue.Item
	for _, n := range plan.NoHelp {
		reasons := strings.Join(n.Reasons, ", ")
		for _, uid := range n.Pods {
			switch p := c.stillPending(uid); {
			case p == nil:
			case p.parsed.StandsIn():
				c.headroom.NoHelp(p.parsed, reasons)
			default:
				why[uid] = reasons
				items = append(items, c.queue.Get(uid))
			}
		}
	}
	slices.SortFunc(items, func(a, b *queue.Item) int { return cmp.Compare(a.Sequence(), b.Sequence()) })
	for _, item := range items {
		p := c.pods[item.Pod().UID]
		c.reporting.NotTriggeredScaleUp(c.turn, &p.reports, p.parsed.Object, why[p.parsed.UID])
	}
}

// waits tells whether a pod has no node yet, and none that others are to leave for it.
func (c *Core) waits(uid types.UID) bool {
	p := c.stillPending(uid)
	return p != nil && !c.hasNodeToWaitFor(p)
}

// hasNodeToWaitFor tells whether a pod is nominated to a node that exists, by a decision or
// by what somebody else has written.
func (c *Core) hasNodeToWaitFor(p *pod) bool {
	return p.nomination.Decided() && c.state.NodeByName(c.state.NominatedTo(p.parsed.UID)) != nil
}

// stillPending returns the record of a pod that has no node yet, nil for any other. Such a
// pod has an item in the queue.
func (c *Core) stillPending(uid types.UID) *pod {
	if p := c.pods[uid]; p != nil && p.node() == "" {
		return p
	}
	return nil
}

// scaleUpDone has another plan made at once when a group is out of stock: the group backs
// off, so that the plan falls to the next choice among the others. This ends: a group that
// backs off isn't asked again.
func (c *Core) scaleUpDone(in step.ScaleUpDone) {
	if c.cfg.Autoscale != nil && c.scale.groups.ScaleUpDone(c.turn, in) {
		c.reservation.Refused(c.turn, in.Group, in.Nodes)
		c.scale.planning.Retry(c.turn.Now)
	}
}

// taintDone hands the outcome to who has the taint written.
func (c *Core) taintDone(in step.TaintDone) {
	switch {
	case c.cfg.Autoscale == nil:
	case in.Key == autoscaler.DeletionCandidateTaint:
		c.scale.candidates.TaintDone(c.turn, in)
	default:
		c.scale.deletions.TaintDone(c.turn, in)
	}
}

func (c *Core) evictionDone(in step.EvictionDone) {
	if c.cfg.Autoscale != nil {
		c.scale.deletions.EvictionDone(c.turn, in)
	}
}

func (c *Core) surgeDone(in step.SurgeDone) {
	if c.cfg.Autoscale != nil {
		c.scale.deletions.SurgeDone(c.turn, in)
	}
}

// nodeDeletionDone hands the outcome to both machines: the node groups ask for the
// deletion of instances that aren't nodes, the node deletions for that of nodes, and a
// node that is shown for an instance meanwhile shares its outcome. A plan is wanted for the
// pods of an instance that has failed since its group is out of stock.
func (c *Core) nodeDeletionDone(in step.NodeDeletionDone) {
	if c.cfg.Autoscale != nil {
		if c.scale.groups.NodeDeletionDone(c.turn, in) {
			c.scale.planning.Want(c.turn.Now)
		}
		c.scale.deletions.NodeDeletionDone(c.turn, in)
	}
}
