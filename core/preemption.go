package core

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/queue"
)

// A pod may take the place of others in two steps, as KEP-4832 has it: the
// decision nominates it to a node and returns, and the victims are asked to leave
// at the edge. Meanwhile the pod is held out of the queue. Then it waits for its
// node like for any other change: since the core sees every victim go, and looks
// at the node once more when the last call is answered, no order of the two loses
// the wake-up.

// preempting is a preemption under way.
type preempting struct {
	open map[types.UID]bool // victims without an outcome
	err  error              // the first
}

// victim is a pod on its way out.
type victim struct {
	by        types.UID
	cancelled bool // a bind to the node is being taken back
	asked     bool // a PreemptionDone is owed
}

// early is what to say of a victim that went before the call that asked it to
// was answered.
type early struct {
	by    types.UID
	event step.Event
}

// preempt has the victims leave a node for a pod, which is nominated to it.
func (c *Core) preempt(i *queue.Item, victims *engine.Candidate, r *step.Ready) {
	p := c.pods[i.Pod().UID]
	on := c.state.Node(victims.Node)
	node := on.Name
	c.stats.Preemptions++
	c.stats.Victims += len(victims.Pods)
	names := make([]string, len(victims.Pods))
	for k, v := range victims.Pods {
		names[k] = v.Name()
	}
	c.decided(r, step.Decision{Kind: step.Preempts, Pod: i.Pod().Name(), Node: node, Victims: names,
		Reason: fmt.Sprintf("%d pods of lower priority leave, %d of them against a disruption budget", len(names), victims.Violations)})
	c.yield(on, i.Pod(), r)
	x := &preempting{open: map[types.UID]bool{}}
	for _, v := range victims.Pods {
		if v.Object.DeletionTimestamp != nil || c.victims[v.UID] != nil {
			continue // it is on its way already
		}
		x.open[v.UID] = true
		l := &victim{by: i.Pod().UID}
		c.victims[v.UID] = l
		if b := c.pods[v.UID]; b != nil && b.waits != nil {
			b.waits.rejected = "preempted"
			continue
		} else if b != nil && b.assumed != "" && !b.told {
			l.cancelled = true
			r.Cancels = append(r.Cancels, step.Cancel{UID: v.UID})
			continue
		}
		c.evictFor(v, r)
	}
	if len(x.open) > 0 {
		p.preempting = x
	}
}

// evictFor asks a victim to leave.
func (c *Core) evictFor(v *cluster.Pod, r *step.Ready) {
	c.victims[v.UID].asked = true
	by, scheduler := c.victims[v.UID].by, v1.DefaultSchedulerName
	if p := c.pods[by]; p != nil {
		scheduler = p.parsed.Object.Spec.SchedulerName
	}
	node := ""
	if n := c.state.NodeOf(v.UID); n != nil {
		node = n.Name
	}
	r.Preemptions = append(r.Preemptions, step.Preemption{UID: v.UID, Namespace: v.Object.Namespace, Name: v.Object.Name, Node: node, By: by,
		Message: scheduler + ": preempting to accommodate a higher priority pod"})
}

// yield takes back the nominations of less important pods to a node: there may
// be no room for them any more, and they are tried elsewhere at once.
func (c *Core) yield(node *cluster.Node, to *cluster.Pod, r *step.Ready) {
	for _, n := range slices.Clone(node.Nominated) {
		p := c.pods[n.UID]
		if n.Priority >= to.Priority || p == nil {
			continue
		}
		if item := c.queue.Get(n.UID); item != nil {
			c.nomination.Withdraw(c.turn(r), &p.nomination, item)
			if p.preempting == nil {
				c.queue.Activate(item)
			}
		}
	}
}

func (c *Core) preemptionDone(in step.PreemptionDone, r *step.Ready) {
	l := c.victims[in.UID]
	if l == nil || l.by != in.By {
		if gone, ok := c.leftEarly[in.UID]; ok && gone.by == in.By {
			delete(c.leftEarly, in.UID)
			if in.Err == nil {
				r.Events = append(r.Events, gone.event)
			}
		}
		return
	}
	l.asked = false
	if in.Err != nil {
		delete(c.victims, in.UID)
		c.counted(in.UID)
	} else if v := c.state.PodOn(in.UID); v != nil {
		c.tellPreempted(v, in.By, "", r)
	}
	c.victimDone(in.UID, in.By, in.Err, r)
}

// counted takes note of the pods that have counted on a victim of another's to
// leave, which it won't.
func (c *Core) counted(victim types.UID) {
	n := c.state.NodeOf(victim)
	if n == nil {
		return
	}
	for _, p := range n.Nominated {
		if item := c.queue.Get(p.UID); item != nil {
			c.released = append(c.released, item)
		}
	}
}

func (c *Core) tellPreempted(v *cluster.Pod, by types.UID, how string, r *step.Ready) {
	r.Events = append(r.Events, c.preempted(v, by, how))
}

func (c *Core) preempted(v *cluster.Pod, by types.UID, how string) step.Event {
	node := ""
	if n := c.state.NodeOf(v.UID); n != nil {
		node = n.Name
	}
	return step.PodEvent(v.Object, "Preempted", "Preempting", fmt.Sprintf("Preempted by pod %s on node %s%s", by, node, how))
}

// departing notes what there will be to say of a victim that is about to leave the
// state: it may be gone before the answer to the call that asked it to go comes.
func (c *Core) departing(uid types.UID) {
	if l, v := c.victims[uid], c.state.PodOn(uid); l != nil && l.asked && v != nil {
		c.leftEarly[uid] = early{l.by, c.preempted(v, l.by, "")}
	}
}

// victimGone takes note that a pod has left the cluster, or lost its node.
func (c *Core) victimGone(uid types.UID, r *step.Ready) {
	if l := c.victims[uid]; l != nil {
		delete(c.victims, uid)
		c.victimDone(uid, l.by, nil, r)
	}
}

// victimBound takes note that the bind of a victim could not be taken back.
func (c *Core) victimBound(v *cluster.Pod, r *step.Ready) {
	if l := c.victims[v.UID]; l != nil && l.cancelled {
		l.cancelled = false
		c.evictFor(v, r)
	}
}

// victimDone ends the preemption when it was the last victim's outcome: the pod
// waits for its node, or, when something failed, is tried again.
func (c *Core) victimDone(victim, by types.UID, err error, r *step.Ready) {
	p := c.pods[by]
	if p == nil || p.preempting == nil || !p.preempting.open[victim] {
		return
	}
	x := p.preempting
	delete(x.open, victim)
	if x.err == nil {
		x.err = err
	}
	if len(x.open) > 0 {
		return
	}
	p.preempting = nil
	item := c.queue.Get(by)
	if item == nil || item.Stage() != queue.Held {
		return
	}
	if x.err != nil {
		c.decided(r, step.Decision{Kind: step.PreemptionFailed, Pod: p.parsed.Name(), Node: c.state.NominatedTo(by), Reason: x.err.Error()})
		c.nomination.Withdraw(c.turn(r), &p.nomination, item)
		c.queue.Fail(c.now, item)
		return
	}
	c.released = append(c.released, item)
}

// release ends the waiting of pods whose victims have all been asked to leave,
// when all inputs of the Step are in; and of those who counted on victims that
// don't.
func (c *Core) release() {
	for _, item := range c.released {
		p := c.pods[item.Pod().UID]
		if item.Stage() == queue.Unschedulable && item.Nominated() && c.sched.WaitsInVain(item.Pod(), item.Class()) {
			c.queue.WakePod(c.now, item)
			continue
		}
		if item.Stage() != queue.Held || p == nil || p.preempting != nil {
			continue
		}
		class := c.sched.Class(item.Pod())
		c.queue.SetClass(item, class)
		if c.sched.Fits(item.Pod(), class) || c.sched.WaitsInVain(item.Pod(), class) {
			c.queue.ReleaseToTry(c.now, item)
			continue
		}
		d := c.queue.StillRejected(class)
		if d == nil {
			d = c.sched.Diagnose(class)
		}
		c.queue.ReleaseToWait(c.now, item, d)
	}
	c.released = c.released[:0]
}

// awaited returns which nominated pods the changes let onto their nodes, or leave
// nothing to wait for there.
func (c *Core) awaited(known bool, changes []cluster.Change) func(*queue.Item) bool {
	if len(c.state.Nominations()) == 0 {
		return func(*queue.Item) bool { return false }
	}
	touched := map[string]bool{}
	for i := range changes {
		if n := c.state.Node(changes[i].Node); n != nil {
			touched[n.Name] = true
		}
	}
	return func(i *queue.Item) bool {
		to := c.state.NominatedTo(i.Pod().UID)
		concerned := !known || touched[to] || c.state.NodeByName(to) == nil || len(changes) > 0 && i.Class().LooksBeyondNode()
		return concerned && (c.sched.FitsNominated(i.Pod(), i.Class()) || c.sched.WaitsInVain(i.Pod(), i.Class()))
	}
}

// unsettledPreemptions says what preemption still waits for.
func (c *Core) unsettledPreemptions() (out []string) {
	for _, uid := range slices.Sorted(maps.Keys(c.pods)) {
		p := c.pods[uid]
		if p.preempting != nil {
			out = append(out, fmt.Sprintf("pod %s is held for victims without an answer: %v", uid, slices.Sorted(maps.Keys(p.preempting.open))))
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(c.victims)) {
		out = append(out, fmt.Sprintf("pod %s was to leave for %s, and is still there", uid, c.victims[uid].by))
	}
	for _, uid := range slices.Sorted(maps.Keys(c.leftEarly)) {
		out = append(out, fmt.Sprintf("pod %s has left, and the call that asked it to has no answer", uid))
	}
	return out
}
