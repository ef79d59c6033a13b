package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/autoscaler"
	"github.com/berthproject/berth/autoscaler/nodegroup"
	"github.com/berthproject/berth/autoscaler/scaledown"
	"github.com/berthproject/berth/autoscaler/scaleup"
	"github.com/berthproject/berth/cluster"
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
	promised   []autoscaler.Promise // orders on their way, oldest first
	machines   machines
}

// idle is since when a node has been empty, and whether it was ready then.
type idle struct {
	since time.Time
	ready bool
}

// deletion is a node being removed. Who holds one takes the taint away again
// or sees the node go.
type deletion struct {
	phase    phase
	since    time.Time // of the phase
	taint    v1.Taint
	why      string
	evicting map[types.UID]bool // evictions without an answer
	again    bool               // taking the taint away has failed
}

type phase uint8

const (
	tainting  phase = iota // the taint is being written
	tainted                // waiting before the last look
	evicting               // daemon pods were asked to leave
	deleting               // the provider was asked
	returning              // the node stays; the taint is being taken away
)

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
func (c *Core) autoscale(r *Ready) {
	c.advanceDeletions(r)
	s := &c.scale
	if s.planning || !s.hasGroups || c.now.Sub(s.lastPlan) < c.cfg.Autoscale.ScanInterval {
		return
	}
	s.planning, s.lastPlan = true, c.now
	req := &autoscaler.Request{Now: c.now, Limits: c.cfg.Autoscale.Limits}
	for _, i := range c.queue.Rejected() {
		req.Pending = append(req.Pending, i.Pod)
	}
	c.prunePromises()
	req.Promised = slices.Clone(s.promised)
	r.Plan = req
}

// prunePromises forgets the pods that wait no longer, and orders without any.
func (c *Core) prunePromises() {
	var kept []autoscaler.Promise
	for _, p := range c.scale.promised {
		p.Pods = slices.DeleteFunc(slices.Clone(p.Pods), func(uid types.UID) bool { return c.stillPending(uid) == nil })
		if len(p.Pods) > 0 {
			kept = append(kept, p)
		}
	}
	c.scale.promised = kept
}

func (in GroupsSet) apply(c *Core, r *Ready) {
	if c.cfg.Autoscale == nil {
		return // groups are of no interest to a scheduler
	}
	c.scale.hasGroups = true
	seen := map[string]bool{}
	for i := range in.Groups {
		g := &in.Groups[i]
		seen[g.ID] = true
		c.setGroup(&cluster.NodeGroup{
			ID: g.ID, Min: g.Min, Max: g.Max, Target: g.Target + c.scale.inFlight[g.ID], Price: g.Price,
			Template:  c.state.Schema.ParseNode(g.Template, g.ID),
			BackedOff: c.scale.backoff.Active(g.ID, c.now),
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
	if old := c.state.Group(g.ID); old != nil && old.Min == g.Min && old.Max == g.Max && old.Target == g.Target &&
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

func (in PlanMade) apply(c *Core, r *Ready) {
	c.scale.planning = false
	c.scale.followed = in.Plan.Seq
	for i := range in.Plan.ScaleUps {
		c.commitScaleUp(&in.Plan.ScaleUps[i], r)
	}
	for _, n := range in.Plan.NoHelp {
		message := "pod didn't trigger scale-up: " + strings.Join(n.Reasons, ", ")
		for _, uid := range n.Pods {
			if p := c.stillPending(uid); p != nil && p.scaled != message {
				p.scaled = message
				c.decided(r, Decision{Kind: NotScaledUp, Pod: podName(p.parsed.Object.Namespace, p.parsed.Object.Name), Reason: strings.Join(n.Reasons, ", ")})
				r.Events = append(r.Events, podEvent(p.parsed.Object, false, "NotTriggerScaleUp", "ScalingUp", message))
			}
		}
	}
	if !c.cfg.Autoscale.DisableScaleDown {
		c.commitScaleDown(in.Plan, r)
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
func (c *Core) commitScaleUp(up *autoscaler.ScaleUp, r *Ready) {
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
	nodes = min(nodes, g.Max-g.Target)
	if most := c.cfg.Autoscale.Limits.MaxNodesLaunching; most > 0 {
		nodes = min(nodes, most-scaleup.Launching(c.state, c.now, c.cfg.Autoscale.Limits.StartupTime))
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
	promise := autoscaler.Promise{Group: g.ID, Nodes: nodes}
	for _, p := range waiting {
		promise.Pods = append(promise.Pods, p.parsed.UID)
	}
	c.scale.promised = append(c.scale.promised, promise)
	c.decided(r, Decision{Kind: ScaledUp, Group: g.ID, Nodes: nodes, Reason: fmt.Sprintf("%d pods wait; %d->%d (max: %d), %.2f of 2 wasted", len(waiting), g.Target, g.Target+nodes, g.Max, up.Wasted)})
	c.scale.inFlight[g.ID] += nodes
	c.scale.grown[g.ID] = c.now
	c.retarget(g.ID, nodes)
	r.ScaleUps = append(r.ScaleUps, ScaleUp{g.ID, nodes})
}

func (in ScaleUpDone) apply(c *Core, r *Ready) {
	c.scale.inFlight[in.Group] -= in.Nodes
	if in.Err == nil {
		return
	}
	c.decided(r, Decision{Kind: ScaleUpFailed, Group: in.Group, Nodes: in.Nodes, Reason: in.Err.Error()})
	c.scale.backoff.Fail(in.Group, c.now)
	c.scale.shrinkFrom[in.Group] = c.now.Add(c.cfg.Autoscale.DelayAfterFailure)
	c.retarget(in.Group, -in.Nodes)
	c.scale.promised = slices.DeleteFunc(c.scale.promised, func(p autoscaler.Promise) bool { return p.Group == in.Group })
}

// commitScaleDown updates the timers of empty nodes and starts to remove those
// that have been empty long enough.
func (c *Core) commitScaleDown(plan *autoscaler.Plan, r *Ready) {
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
		d := &deletion{since: c.now, taint: c.deletionTaint(), why: why}
		c.decided(r, Decision{Kind: NodeTainted, Node: name, Group: n.Group, Reason: fmt.Sprintf("%s for %s", why, c.now.Sub(at.since))})
		s.deletions[name] = d
		going[g.ID]++
		removing++
		c.state.SetNode(n.NodeInfo.WithTaint(d.taint))
		r.Taints = append(r.Taints, Taint{Node: name, Taint: d.taint})
	}
}

// cooling tells whether a group grew, or failed to, too recently to shrink.
func (c *Core) cooling(group string) bool {
	s := &c.scale
	grown, ok := s.grown[group]
	return ok && c.now.Sub(grown) < c.cfg.Autoscale.DelayAfterAdd || c.now.Before(s.shrinkFrom[group])
}

// going counts, by group, the nodes being removed.
func (c *Core) going() map[string]int {
	out := map[string]int{}
	for name, d := range c.scale.deletions {
		if n := c.state.NodeByName(name); n != nil && d.phase != returning {
			out[n.Group]++
		}
	}
	return out
}

// resumeDeletion takes over a node that carries the taint without our having
// put it there: we did before a restart. It is removed or given back.
func (c *Core) resumeDeletion(info *cluster.NodeInfo) {
	for _, t := range info.Object.Spec.Taints {
		if t.Key == autoscaler.ToBeDeletedTaint {
			c.scale.deletions[info.Name] = &deletion{phase: tainted, since: c.now, taint: t, why: "its removal had begun"}
		}
	}
}

func (in TaintDone) apply(c *Core, r *Ready) {
	d := c.scale.deletions[in.Node]
	if d != nil && d.phase == returning {
		if in.Err == nil {
			delete(c.scale.deletions, in.Node)
		} else {
			d.again, d.since = true, c.now
		}
		return
	}
	if d == nil || d.phase != tainting {
		return
	}
	if in.Err != nil {
		c.giveBack(in.Node, fmt.Sprintf("the node could not be tainted: %v", in.Err), r)
		return
	}
	d.phase, d.since = tainted, c.now
}

// advanceDeletions takes a last look at tainted nodes and asks the provider to
// remove those that are still empty.
func (c *Core) advanceDeletions(r *Ready) {
	s, a := &c.scale, c.cfg.Autoscale
	for _, name := range slices.Sorted(maps.Keys(s.deletions)) {
		d := s.deletions[name]
		n := c.state.NodeByName(name)
		switch {
		case n == nil:
			delete(s.deletions, name)
		case d.phase == returning && d.again && !c.now.Before(d.due(a)):
			d.again = false
			r.Taints = append(r.Taints, Taint{Node: name, Taint: d.taint, Remove: true})
		case d.phase == returning: // its outcome is awaited
		case !d.due(a).IsZero() && !c.now.Before(d.due(a)):
			g := c.state.Group(n.Group)
			switch {
			case !s.hasGroups: // the provider is yet to tell
			case g == nil:
				c.giveBack(name, "the node is in no node group", r)
			case !scaledown.Removable(n):
				c.giveBack(name, "the node is no longer empty", r)
			case g.Target-c.goingOthers(g.ID, name) <= g.Min:
				c.giveBack(name, "the node group is at its minimum", r)
			case d.phase == tainted && c.evictDaemons(d, n, r):
				d.phase, d.since = evicting, c.now
			default:
				d.phase, d.since = deleting, c.now
				r.NodeDeletions = append(r.NodeDeletions, NodeDeletion{g.ID, name, n.Object.Spec.ProviderID})
				c.decided(r, Decision{Kind: NodeRemoved, Node: name, Group: g.ID, Reason: d.why})
				r.Events = append(r.Events, nodeEvent(n.Object, false, "ScaleDown", "ScalingDown", "node removed by cluster autoscaler: "+d.why))
			}
		}
	}
}

// untaintAgain is how long after a failure to take a taint away it is tried
// again.
const untaintAgain = 5 * time.Second

// due returns when the deletion goes on without an outcome; zero for never.
func (d *deletion) due(a *Autoscale) time.Time {
	switch d.phase {
	case tainted:
		return d.since.Add(a.DeleteDelayAfterTaint)
	case evicting:
		if len(d.evicting) == 0 {
			return d.since
		}
		return d.since.Add(a.MaxPodEvictionTime)
	case returning:
		if d.again {
			return d.since.Add(untaintAgain)
		}
	}
	return time.Time{}
}

// enableEviction is the annotation by which a daemon pod says whether it is to
// be evicted, whatever the flag.
const enableEviction = "cluster-autoscaler.kubernetes.io/enable-ds-eviction"

// evictDaemons asks the node's daemon pods to leave, where that is wanted, and
// tells whether there were any. As in Cluster Autoscaler it is a courtesy: one
// that can't be evicted doesn't keep the node.
func (c *Core) evictDaemons(d *deletion, n *cluster.Node, r *Ready) bool {
	d.evicting = map[types.UID]bool{}
	for _, p := range n.Pods {
		wish := p.Object.Annotations[enableEviction]
		if !p.Daemon() || p.Mirror() || p.Object.DeletionTimestamp != nil || wish != "true" && (wish == "false" || !c.cfg.Autoscale.EvictDaemonPods) {
			continue
		}
		d.evicting[p.UID] = true
		c.decided(r, Decision{Kind: PodEvicted, Pod: podName(p.Object.Namespace, p.Object.Name), Node: n.Name})
		r.Evictions = append(r.Evictions, Eviction{p.UID, p.Object.Namespace, p.Object.Name, n.Name})
	}
	return len(d.evicting) > 0
}

func (in EvictionDone) apply(c *Core, _ *Ready) {
	if d := c.scale.deletions[in.Node]; d != nil {
		delete(d.evicting, in.UID)
	}
}

func (c *Core) goingOthers(group, but string) int {
	n := c.going()[group]
	if c.scale.deletions[but] != nil {
		n--
	}
	return n
}

// giveBack ends a deletion with the node staying: the taint goes, and the
// deletion is remembered until it has.
func (c *Core) giveBack(name, why string, r *Ready) {
	d := c.scale.deletions[name]
	d.phase, d.since = returning, c.now
	delete(c.scale.emptySince, name)
	c.decided(r, Decision{Kind: NodeKept, Node: name, Reason: why})
	r.Taints = append(r.Taints, Taint{Node: name, Taint: d.taint, Remove: true})
	if n := c.state.NodeByName(name); n != nil {
		r.Events = append(r.Events, nodeEvent(n.Object, true, "ScaleDownFailed", "ScalingDown", why))
		c.state.SetNode(n.NodeInfo.WithoutTaint(d.taint.Key))
	}
}

func (in NodeDeletionDone) apply(c *Core, r *Ready) {
	if c.machineDone(in, r) {
		return
	}
	if d := c.scale.deletions[in.Node]; d != nil && d.phase == deleting {
		c.deleted(in.Node, in.Err, r)
	}
}

// deleted takes the outcome of a node's removal.
func (c *Core) deleted(name string, err error, r *Ready) {
	if err != nil {
		c.giveBack(name, fmt.Sprintf("the provider did not remove the node: %v", err), r)
		return
	}
	// The node is as good as gone. Should its object linger, it comes back as
	// a tainted node and is looked at again.
	delete(c.scale.deletions, name)
	if n := c.state.NodeByName(name); n != nil {
		c.retarget(n.Group, -1)
		c.state.RemoveNode(name)
	}
}

func (c *Core) deletionTaint() v1.Taint {
	return v1.Taint{Key: autoscaler.ToBeDeletedTaint, Value: fmt.Sprint(c.now.Unix()), Effect: v1.TaintEffectNoSchedule}
}
