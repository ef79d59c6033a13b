package core

import (
	"maps"
	"slices"
	"time"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/podgroups"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/step"
)

// This file has the calls that drive a core, and the order of a Step.

// Take takes in what happened and decides nothing yet: what work it brings comes with the
// next Step. However inputs are divided among Takes and a Step, the decisions are the
// same.
func (c *Core) Take(now time.Time, inputs ...door.Input) {
	c.turn.Now = now
	for _, in := range inputs {
		c.scale.survey = nil
		c.route(in.Unwrap())
	}
}

// StandBy takes in what happened while another instance decides: the state and the queue
// are kept up, and nothing is decided or said. It is called before the first Step only, and
// BecomeLeader has to be called between. followed is the position that the planner's follower
// has reached; 0 without one.
func (c *Core) StandBy(now time.Time, followed cluster.Seq, inputs ...door.Input) {
	if c.stepped {
		panic("core: StandBy after a Step: its waiting pods would miss changes; make another core")
	}
	c.mode = c.mode.standBy()
	c.Take(now, inputs...)
	c.woken = c.state.Head() // no pod has been tried, so no change is missed
	*c.turn.Ready = step.Ready{}
	if c.cfg.Autoscale != nil {
		c.scale.planning.Followed(followed)
	}
	c.forget(0) // there are no columns
}

// columnsFollow is how many changes are kept for columns, so that one that isn't asked for some
// time needn't be made anew.
const columnsFollow = 1 << 14

// forget forgets the journal but for the last changes, and the classes that nobody needs.
func (c *Core) forget(keep cluster.Seq) {
	c.state.Trim(c.trimTo(keep))
	c.sched.ForgetClasses(c.turn.Now, c.queue.Classes)
}

// BecomeLeader ends the time of StandBy. What the other instance had begun is taken over:
// it may have got no further. What there is to say about objects as they stand goes out with
// the next Step; the other may have said it, or not. It takes O(pods + nodes).
func (c *Core) BecomeLeader(now time.Time) {
	c.turn.Now = now
	c.mode = c.mode.lead()
	c.queue.Classify(c.mode.class)
	c.signedAt = c.state.SignatureVersion()
	c.queue.Regate(func(*cluster.Pod) bool { return true }, c.sched.Gate)
	if c.cfg.Autoscale != nil {
		c.scale.launches.BecomeLeader()
		c.scale.candidates.BecomeLeader()
		c.scale.consolidation.BecomeLeader()
	}
	c.state.Nodes(func(n *cluster.Node) {
		c.mode.reportNode(n.NodeInfo)
		for _, p := range n.Pods {
			c.mode.reportProblems(p)
		}
		if c.cfg.Autoscale != nil {
			c.mode.resumeNode(n.NodeInfo)
		}
	})
	if c.cfg.Autoscale != nil {
		c.scale.interruptions.BecomeLeader(c.turn)
	}
	for _, uid := range slices.Sorted(maps.Keys(c.pods)) {
		p := c.pods[uid]
		c.mode.reportProblems(p.Parsed)
		c.mode.reportGate(p)
	}
	c.podGroups.BecomeLeader(c.turn)
}

// Step takes in what happened, decides, and returns the work to do. Times must not go
// back. Its phases, and why each comes before the next:
//
//  1. Inputs: everything below is to see the cluster as it is. Machines take outcomes
//     here; what has to see all inputs waits for its phase.
//  2. Claims whose devices have taken too long to become ready are marked. Waits for permission that
//     are over end before the queue is asked, and so do places that are kept for members of pod
//     groups: the room that comes free is a change that may help others.
//  3. Objects that ask for headroom are looked at: the queue is asked about the headrooms
//     that they get, and their stand-ins are tried. Homes of evicted pods end for the same
//     reason before it is asked, and those for pods of nodes that the cloud is about to take
//     begin, so that their stand-ins are tried in this Step. After that, pods that have asked for a
//     place for long enough, or whose node comes no more, are to be tried without it in this
//     Step, before a plan buys nodes for them: they may preempt. A shadow gives up decisions
//     that nobody carries out, which makes room, too.
//  4. Expectations of another scheduler are taken back, when a plan is due, before pods
//     are tried: they are decided on anew in this Step, so that the plan sees them placed
//     or pending.
//  5. The queue is asked about all changes since the last time (wake), before any pod is
//     tried: otherwise a class would be taken for rejected that a change has let in.
//  6. Pods are tried, PodsPerStep at most. What decisions change the queue is asked about
//     in the next Step.
//  7. Stand-ins whose room the decisions have taken are tried elsewhere, in the next Step.
//  8. Nominations that could not be written are written again after the decisions, which
//     may have replaced them.
//  9. Messages of waiting classes are refreshed after the decisions, of classes that
//     wait still.
//  10. Launches and node deletions go on, first those of nodes that the cloud is about to take; pods
//     move that can't be resized; and a plan is asked for, last: new nodes have got
//     their first pods by then, nodes that were given a pod aren't empty, and the plan is
//     made for the pods that have found no node in this Step. Candidates come after the
//     node deletions: they see which nodes these let stay.
//  11. NextWake, when nothing can change it any more.
//
// Then the journal and the classes that nobody needs are forgotten.
func (c *Core) Step(now time.Time, inputs ...door.Input) step.Ready {
	c.stepped = true
	c.Take(now, inputs...)
	for _, claim := range c.deallocation.TimedOut(now) {
		c.binding.ObjectSet(c.turn, step.ObjectSet{Object: claim})
	}
	c.binding.Advance(c.turn)
	c.podGroups.Advance(c.turn)
	c.headroom.Advance(c.turn)
	if c.cfg.Autoscale != nil {
		c.scale.interruptions.Advance(c.turn)
		c.scale.resizes.Advance(c.turn)
		c.scale.homes.Advance(c.turn)
	}
	c.reservation.Advance(c.turn)
	gangs{c}.askedInVain(c.reservation.TimedOut())
	c.comparison.Advance(c.turn)
	c.nodeComparison.Advance(c.turn)
	c.scale.survey = nil
	if c.cfg.Autoscale != nil {
		c.keepPlaces()
	}
	mayPlan := c.mode.beforePlan()
	c.wake()
	more := c.schedule()
	more = c.headroom.CheckRoom(c.turn) || more
	c.nomination.Advance(c.turn)
	c.reporting.Advance(c.turn)
	if c.cfg.Autoscale != nil {
		c.advanceLaunches()
		c.scale.interruptions.Drain(c.turn)
		c.scale.resizes.Evict(c.turn)
		c.scale.deletions.Advance(c.turn)
		c.scale.candidates.Advance(c.turn)
		if mayPlan {
			c.requestPlan(more)
		}
	}
	r := c.turn.Flush()
	for i := range r.Taints {
		if n := c.state.NodeByName(r.Taints[i].Node); n != nil {
			r.Taints[i].UID = n.Object.UID
		}
	}
	r.NextWake = c.nextWake(more)
	c.forget(columnsFollow)
	return r
}

// wake asks the queue about the changes since the last time: first which pods have
// another class for them, then whom they help; then preemptors are released that these
// haven't woken, and then the leftover sweep comes, for what no change has woken.
func (c *Core) wake() {
	c.queue.SignedBy(c.state.SignatureInputs())
	if v := c.state.SignatureVersion(); v != c.signedAt {
		c.signedAt = v
		c.queue.Reclassify(c.sched.Class, func(*cluster.Pod) bool { return true })
	}
	changes, known := c.state.Since(c.woken)
	changes = cluster.ReadByRules(changes)
	concerned := c.sched.Reclassifies(changes)
	if !known {
		concerned = func(*cluster.Pod) bool { return true }
	}
	if concerned != nil {
		c.queue.Reclassify(c.sched.Class, concerned)
		regate(c, concerned)
	}
	c.woken = c.state.Head()
	c.podGroups.Check(c.turn, known, changes)
	if !known || len(changes) > 0 {
		c.reporting.NodesChanged(changes)
		if !known {
			c.reporting.AnythingChanged()
		}
		c.tryNominated(known, changes)
		c.queue.Wake(c.turn.Now, c.mayHelp(known, changes))
		c.queue.WakeGroups(c.turn.Now, c.podGroups.MayHelp(known, changes))
	}
	c.preemption.Advance(c.turn)
	c.queue.Sweep(c.turn.Now)
}

// regate asks plugins again whether pods that changes concern are to be kept out of the queue.
func regate(c *Core, concerned func(*cluster.Pod) bool) {
	for _, item := range c.queue.Regate(concerned, c.sched.Gate) {
		p := c.pods[item.Pod().UID]
		if item.Stage() == queue.Gated {
			endPlans(c, p)
			c.mode.reportGate(p)
		} else {
			c.takeHome(p)
		}
	}
}

// mayHelp returns what tells the queue which classes changes may help. Changes that aren't
// known may help any.
func (c *Core) mayHelp(known bool, changes []cluster.Change) func(*engine.Class, *engine.Diagnosis) (engine.Help, *engine.Diagnosis) {
	return func(class *engine.Class, d *engine.Diagnosis) (engine.Help, *engine.Diagnosis) {
		if !known {
			return engine.Fits, d
		}
		return c.sched.MayHelp(class, d, changes)
	}
}

// tryNominated queues nominated pods after changes: those that their nodes take now, and
// those that wait for their nodes in vain. It looks at the nodes that changes have touched,
// and at those whose pods' rules look beyond their nodes; but a place isn't looked at before the
// node is touched if the node doesn't take pods yet, or if the changes don't concern the rules.
func (c *Core) tryNominated(known bool, changes []cluster.Change) {
	if !c.state.AnyNominated() {
		return
	}
	for _, x := range slices.Clone(c.state.NominatedApart()) {
		c.tryNominatedPod(c.queue.Get(x.Pod.UID))
	}
	touched := map[cluster.NodeIndex]bool{}
	for i := range changes {
		touched[changes[i].Node] = true
	}
	groups, inPlaces := map[*queue.Group]bool{}, map[*queue.Group]bool{}
	beyond := len(changes) > 0 && c.queue.AnyNominatedWaits((*engine.Class).LooksBeyondNode)
	helped := c.helpedElsewhere(changes)
	for _, n := range slices.Clone(c.state.NominatedNodes()) {
		if known && !touched[n] && !beyond {
			continue
		}
		for _, p := range slices.Clone(c.state.Node(n).Nominated) {
			item := c.queue.Get(p.UID)
			concerned := !known || touched[n] || item != nil && c.mayFitNow(item, n, helped)
			if item == nil || item.WaitsWithGroup() == nil {
				if concerned {
					c.tryNominatedPod(item)
				}
				continue
			}
			// WakeGroups asks whether there is room for more members; where their own places fill the nodes,
			// there is none.
			g := item.WaitsWithGroup()
			if concerned && c.reservation.WaitsFor(p.UID) && !inPlaces[g] {
				inPlaces[g] = true
				gangs{c}.wakeInPlaces(g)
			}
			groups[g] = true
		}
	}
	c.podGroups.NodesChanged(c.turn, groups)
}

// mayFitNow reports whether changes elsewhere may let a nominated pod onto its node, which they
// haven't touched. A pod without a reserved place may also wait in vain: it is tried whenever its
// rules look beyond the node.
func (c *Core) mayFitNow(item *queue.Item, n cluster.NodeIndex, helped func(*engine.Class) bool) bool {
	pod, class := item.Pod(), item.Class()
	if !c.sched.Reserved(pod.UID) {
		return class.LooksBeyondNode()
	}
	return helped(class) && c.sched.MayFit(pod, class, n)
}

// helpedElsewhere returns what reports whether changes may let pods of a class onto nodes that the
// changes haven't touched. The rules of a class are asked once.
func (c *Core) helpedElsewhere(changes []cluster.Change) func(*engine.Class) bool {
	known := map[*engine.Class]bool{}
	return func(class *engine.Class) bool {
		if !class.LooksBeyondNode() {
			return false
		}
		helped, asked := known[class]
		if !asked {
			helped = c.sched.Engine(class.Pod()).MayHelpElsewhere(class, changes)
			known[class] = helped
		}
		return helped
	}
}

// tryNominatedPod queues a nominated pod if its node takes it now, or if it waits for
// that in vain. item may be nil.
func (c *Core) tryNominatedPod(item *queue.Item) {
	if item != nil && item.WaitsWithGroup() != nil {
		gangs{c}.tryInPlaces(item.WaitsWithGroup())
		return
	}
	if item == nil || item.Stage() != queue.Unschedulable {
		return
	}
	if pod, class := item.Pod(), item.Class(); c.sched.FitsNominated(pod, class) || c.sched.WaitsInVain(pod, class) {
		c.queue.WakePod(c.turn.Now, item)
	}
}

// tryInPlaces queues a pod group, whatever its backoff, once the nodes that it waited for are there.
func (x gangs) tryInPlaces(g *queue.Group) {
	if _, fit := x.inPlaces(g); fit {
		x.c.queue.ActivateGroup(g)
	}
}

// wakeInPlaces ends the wait of a pod group when enough of its members have places that take them now. It is
// called after every change of such a node, so backoffs stay: after an error, or when the members fit one by
// one but not together, the next attempt would end the same.
func (x gangs) wakeInPlaces(g *queue.Group) {
	object := x.c.state.PodGroup(g.Key())
	if g.Item().Stage() != queue.Unschedulable || object == nil {
		return
	}
	if n, fit := x.inPlaces(g); fit && n+x.c.state.PlacedMembers(g.Key()) >= podgroups.MinCount(object) {
		x.c.queue.WakeGroup(x.c.turn.Now, g)
	}
}

// inPlaces returns how many members of a group have a place, and whether each of these fits there.
func (x gangs) inPlaces(g *queue.Group) (n int, fit bool) {
	for _, item := range g.Members() {
		pod := item.Pod()
		if !x.c.reservation.WaitsFor(pod.UID) {
			continue
		}
		if !x.c.sched.FitsNominated(pod, item.Class()) {
			return n, false
		}
		n++
	}
	return n, true
}

// schedule tries pods until there is none to try or the Step is full, and reports whether
// there may be more.
func (c *Core) schedule() (more bool) {
	for tried := 0; tried < c.cfg.PodsPerStep; tried++ {
		item := c.queue.Pop(c.turn.Now)
		if item == nil {
			return false
		}
		if g := item.Group(); g != nil {
			tried += max(len(g.Members())-1, 0)
			c.podGroups.Try(c.turn, g)
			continue
		}
		c.try(item)
	}
	return true
}

// nextWake returns when to Step again though nothing happens: now, when there may be more
// pods to try.
func (c *Core) nextWake(more bool) time.Time {
	if more {
		return c.turn.Now
	}
	next := c.queue.NextWake()
	for _, m := range c.machines.all() {
		next = lifecycle.Earliest(next, m.NextWake())
	}
	if c.cfg.Autoscale != nil {
		next = lifecycle.Earliest(next, c.scale.nextWake())
	}
	return next
}

// trimTo is how far the journal may be forgotten: what the queue and the planner's
// follower have seen, but for so many changes. Columns further behind rebuild.
func (c *Core) trimTo(keep cluster.Seq) cluster.Seq {
	to := c.woken
	if c.cfg.Autoscale != nil {
		to = min(to, c.scale.planning.JournalFrom())
	}
	if head := c.state.Head(); head > keep {
		return min(to, head-keep)
	}
	return 0
}
