package core

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berthproject/berth/core/step"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/queue"
)

// scaling is what the core remembers between plans.
type scaling struct {
	backoff    *nodegroup.Backoff
	planning   bool                 // a plan is being made
	hasGroups  bool                 // the provider has told of its groups
	lastPlan   time.Time            // when the last one was asked for
	followed   cluster.Seq          // position that the follower has reached at least
	inFlight   map[string]int       // nodes asked of the provider without an answer, by group
	grown      map[string]time.Time // last scale-up, by group
	shrinkFrom map[string]time.Time // no scale-down before, by group
	emptySince map[string]idle      // by node
	deletions  map[string]*deletion // by node
	promised   []autoscaler.Order   // orders on their way, oldest first
	machines   machines
	// most is how many nodes a group is asked for at a time after an order that
	// failed: half of it, and twice as many after each that did not.
	most map[string]int
}

// idle is since when a node has been empty, and whether it was ready then.
type idle struct {
	since time.Time
	ready bool
}

func (s *scaling) init(a *Autoscale) {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&a.ScanInterval, 10*time.Second)
	def(&a.UnneededTime, 10*time.Minute)
	def(&a.DelayAfterAdd, 10*time.Minute)
	def(&a.DelayAfterFailure, 3*time.Minute)
	def(&a.DeleteDelayAfterTaint, 5*time.Second)
	def(&a.MaxPodEvictionTime, 2*time.Minute)
	def(&a.MaxProvisionTime, 15*time.Minute)
	def(&a.UnreadyTime, 20*time.Minute)
	def(&a.Limits.StartupTime, 15*time.Minute)
	if a.MaxScaleDown == 0 {
		a.MaxScaleDown = 10
	}
	s.backoff = nodegroup.NewBackoff(a.InitialBackoff, a.MaxBackoff, a.BackoffReset)
	s.inFlight = map[string]int{}
	s.grown = map[string]time.Time{}
	s.shrinkFrom = map[string]time.Time{}
	s.emptySince = map[string]idle{}
	s.most = map[string]int{}
	s.machines = machines{map[string]*machine{}, map[string]time.Time{}}
	s.deletions = map[string]*deletion{}
}

func (s *scaling) nextWake(a *Autoscale) time.Time {
	var next time.Time
	if !s.hasGroups {
		return next // nothing goes on before the provider has told
	}
	if !s.planning {
		next = s.lastPlan.Add(a.ScanInterval)
	}
	for _, d := range s.deletions {
		if at := d.due(a); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// autoscale asks for a plan when one is due and takes deletions further.
func (c *Core) autoscale(r *step.Ready) {
	c.advanceDeletions(r)
	s := &c.scale
	if !c.planDue() {
		return
	}
	s.planning, s.lastPlan = true, c.now
	req := &autoscaler.Request{Now: c.now, Limits: c.cfg.Autoscale.Limits}
	for _, i := range c.queue.Rejected() {
		if !c.cfg.ExternalScheduler || refused(i.Pod.Object) {
			req.Pending = append(req.Pending, i.Pod)
		}
	}
	c.prunePromises()
	req.Orders = slices.Clone(s.promised)
	r.Plan = req
}

// planDue tells whether a plan is to be made now.
func (c *Core) planDue() bool {
	s := &c.scale
	return !s.planning && s.hasGroups && c.now.Sub(s.lastPlan) >= c.cfg.Autoscale.ScanInterval
}

// prunePromises forgets the pods that wait no longer, and orders without any.
func (c *Core) prunePromises() {
	var kept []autoscaler.Order
	for _, p := range c.scale.promised {
		p.Pods = slices.DeleteFunc(slices.Clone(p.Pods), func(uid types.UID) bool { return c.stillPending(uid) == nil })
		if len(p.Pods) > 0 {
			kept = append(kept, p)
		}
	}
	c.scale.promised = kept
}

func (c *Core) groupsSet(in step.GroupsSet, r *step.Ready) {
	if c.cfg.Autoscale == nil {
		return // groups are of no interest to a scheduler
	}
	c.scale.hasGroups = true
	c.resolveDoubts(in.Groups, r)
	seen := map[string]bool{}
	for i := range in.Groups {
		g := &in.Groups[i]
		seen[g.ID] = true
		c.setGroup(&cluster.NodeGroup{
			ID: g.ID, Min: g.Min, Max: g.Max, Target: g.Target + c.scale.inFlight[g.ID], Price: g.Price,
			Template:  c.state.Schema.ParseNode(g.Template, g.ID),
			BackedOff: c.scale.backoff.Active(g.ID, c.now), LongUnregistered: c.scale.machines.stuck(g.ID),
		})
	}
	for _, g := range c.state.Groups() {
		if !seen[g.ID] {
			c.state.SetGroup(g.ID, nil)
		}
	}
	c.watchMachines(in.Groups, r)
}

// setGroup records a group unless nothing about it is new.
func (c *Core) setGroup(g *cluster.NodeGroup) {
	if old := c.state.Group(g.ID); old != nil && old.Min == g.Min && old.Max == g.Max && old.Target == g.Target && old.LongUnregistered == g.LongUnregistered &&
		old.Price == g.Price && old.BackedOff == g.BackedOff && old.Template.SameTemplate(g.Template) {
		return
	}
	c.state.SetGroup(g.ID, g)
}

// retarget changes what is assumed of a group's size.
func (c *Core) retarget(id string, delta int) {
	if old := c.state.Group(id); old != nil {
		g := *old
		g.Target = max(g.Target+delta, 0)
		g.BackedOff = c.scale.backoff.Active(id, c.now)
		c.state.SetGroup(id, &g)
	}
}

func (c *Core) planMade(in step.PlanMade, r *step.Ready) {
	c.scale.planning = false
	c.scale.followed = in.Plan.Seq
	for i := range in.Plan.ScaleUps {
		c.commitScaleUp(&in.Plan.ScaleUps[i], r)
	}
	c.tellNoHelp(in.Plan, r)
	if !c.cfg.Autoscale.DisableScaleDown {
		c.commitScaleDown(in.Plan, r)
	}
}

// tellNoHelp says of pods that no group would help them why, in the order in
// which they were queued, once until it changes.
func (c *Core) tellNoHelp(plan *autoscaler.Plan, r *step.Ready) {
	why := map[types.UID]string{}
	var pods []*queue.Item
	for _, n := range plan.NoHelp {
		reasons := strings.Join(n.Reasons, ", ")
		for _, uid := range n.Pods {
			if p, i := c.stillPending(uid), c.queue.Get(uid); p != nil && i != nil {
				why[uid] = reasons
				pods = append(pods, i)
			}
		}
	}
	slices.SortFunc(pods, func(a, b *queue.Item) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for _, i := range pods {
		p := c.pods[i.Pod.UID]
		message := "pod didn't trigger scale-up: " + why[i.Pod.UID]
		if p.scaled != message {
			p.scaled = message
			o := p.parsed.Object
			c.decided(r, step.Decision{Kind: step.NotScaledUp, Pod: podName(o.Namespace, o.Name), Reason: why[i.Pod.UID]})
			r.Events = append(r.Events, podEvent(o, false, "NotTriggerScaleUp", "ScalingUp", message))
		}
	}
}

func (c *Core) stillPending(uid types.UID) *pod {
	if p := c.pods[uid]; p != nil && p.assumed == "" {
		return p
	}
	return nil
}

// commitScaleUp buys what a plan proposes, as far as its pods still wait and
// the group still has room.
func (c *Core) commitScaleUp(up *autoscaler.ScaleUp, r *step.Ready) {
	g := c.state.Group(up.Group)
	if g == nil || c.scale.backoff.Active(up.Group, c.now) {
		return
	}
	var waiting []*pod
	for _, uid := range up.Pods {
		if p := c.stillPending(uid); p != nil {
			waiting = append(waiting, p)
		}
	}
	nodes := (up.Nodes*len(waiting) + len(up.Pods) - 1) / len(up.Pods)
	// Removals may fail: until they are done they count as there.
	nodes = min(nodes, g.Max-g.Target-c.leaving(g.ID))
	if most := c.cfg.Autoscale.Limits.MaxNodesLaunching; most > 0 {
		nodes = min(nodes, most-scaleup.Launching(c.state, c.now, c.cfg.Autoscale.Limits.StartupTime))
	}
	if most := c.scale.most[g.ID]; most > 0 {
		nodes = min(nodes, most)
	}
	if nodes <= 0 {
		return
	}
	message := fmt.Sprintf("pod triggered scale-up: [{%s %d->%d (max: %d)}]", g.ID, g.Target, g.Target+nodes, g.Max)
	for _, p := range waiting {
		if p.scaled != message {
			p.scaled = message
			r.Events = append(r.Events, podEvent(p.parsed.Object, false, "TriggeredScaleUp", "ScalingUp", message))
		}
	}
	promise := autoscaler.Order{Group: g.ID, Nodes: nodes}
	for _, p := range waiting {
		promise.Pods = append(promise.Pods, p.parsed.UID)
	}
	c.scale.promised = append(c.scale.promised, promise)
	c.decided(r, step.Decision{Kind: step.ScaledUp, Group: g.ID, Nodes: nodes, Reason: fmt.Sprintf("%d pods wait; %d->%d (max: %d), %.2f of 2 wasted", len(waiting), g.Target, g.Target+nodes, g.Max, up.Wasted)})
	c.scale.inFlight[g.ID] += nodes
	c.scale.grown[g.ID] = c.now
	c.retarget(g.ID, nodes)
	r.ScaleUps = append(r.ScaleUps, step.ScaleUp{Group: g.ID, Nodes: nodes})
}

func (c *Core) scaleUpDone(in step.ScaleUpDone, r *step.Ready) {
	c.scale.inFlight[in.Group] -= in.Nodes
	if in.Err == nil {
		if most := c.scale.most[in.Group]; most > in.Nodes {
			delete(c.scale.most, in.Group) // more would have been had
		} else if most > 0 {
			c.scale.most[in.Group] = 2 * most
		}
		return
	}
	c.scale.most[in.Group] = max(in.Nodes/2, 1)
	c.decided(r, step.Decision{Kind: step.ScaleUpFailed, Group: in.Group, Nodes: in.Nodes, Reason: in.Err.Error()})
	c.scale.backoff.Fail(in.Group, c.now)
	c.scale.shrinkFrom[in.Group] = c.now.Add(c.cfg.Autoscale.DelayAfterFailure)
	c.retarget(in.Group, -in.Nodes)
	c.scale.promised = slices.DeleteFunc(c.scale.promised, func(p autoscaler.Order) bool { return p.Group == in.Group })
}

// commitScaleDown updates the timers of empty nodes and starts to remove those
// that have been empty long enough.
func (c *Core) commitScaleDown(plan *autoscaler.Plan, r *step.Ready) {
	s, a := &c.scale, c.cfg.Autoscale
	since := map[string]idle{}
	for _, name := range plan.Empty {
		n := c.state.NodeByName(name)
		if n == nil {
			continue
		}
		at, ok := s.emptySince[name]
		if !ok || at.ready != n.Ready() {
			at = idle{plan.Now, n.Ready()}
		}
		since[name] = at
	}
	s.emptySince = since
	removing := len(s.deletions)
	going := c.going()
	for _, name := range plan.Empty {
		n := c.state.NodeByName(name)
		if n == nil || s.deletions[name] != nil || removing >= a.MaxScaleDown {
			continue
		}
		at, why := since[name], "it has been empty"
		if at.ready && c.now.Sub(at.since) < a.UnneededTime {
			continue
		}
		if !at.ready {
			if why = "it has been empty and unready"; a.KeepUnready || c.now.Sub(at.since) < a.UnreadyTime {
				continue
			}
		}
		g := c.state.Group(n.Group)
		if g == nil || !scaledown.Removable(n) || g.Target-going[g.ID]-1 < g.Min || c.cooling(g.ID) {
			continue
		}
		c.decided(r, step.Decision{Kind: step.NodeTainted, Node: name, Group: n.Group, Reason: fmt.Sprintf("%s for %s", why, c.now.Sub(at.since))})
		c.beginRemoval(n, why, r)
		going[g.ID]++
		removing++
	}
}

// cooling tells whether a group grew, or failed to, too recently to shrink.
func (c *Core) cooling(group string) bool {
	s := &c.scale
	grown, ok := s.grown[group]
	return ok && c.now.Sub(grown) < c.cfg.Autoscale.DelayAfterAdd || c.now.Before(s.shrinkFrom[group])
}
