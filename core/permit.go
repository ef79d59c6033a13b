package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// A pod that was given a node is reserved for, needs permission, and is bound.
// Until the bind is out it can be stopped here; afterwards its outcome tells.
// Whatever ends it without a binding goes through unplace.

// waitingPod is a pod that has a node and waits for permission to be bound.
type waitingPod struct {
	p        *pod
	bind     step.Bind
	since    time.Time
	votes    []vote // of the plugins that it waits for
	rejected string // why it has to leave its node again
}

// vote is a plugin that a pod waits for.
type vote struct {
	plugin string
	until  time.Time
}

// Pod implements framework.WaitingPod.
func (w *waitingPod) Pod() *cluster.Pod { return w.p.parsed }

// Node implements framework.WaitingPod.
func (w *waitingPod) Node() string { return w.p.assumed }

// Pending implements framework.WaitingPod.
func (w *waitingPod) Pending() (out []string) {
	for _, v := range w.votes {
		out = append(out, v.plugin)
	}
	return out
}

// Allow implements framework.WaitingPod.
func (w *waitingPod) Allow(plugin string) {
	w.votes = slices.DeleteFunc(w.votes, func(v vote) bool { return v.plugin == plugin })
}

// Reject implements framework.WaitingPod.
func (w *waitingPod) Reject(plugin, message string) {
	if w.rejected == "" {
		w.rejected = fmt.Sprintf("rejected by plugin %s: %s", plugin, message)
	}
}

// waitingPods are those of a core.
type waitingPods struct{ c *Core }

// Each implements framework.WaitingPods.
func (l waitingPods) Each(f func(framework.WaitingPod)) {
	for _, w := range slices.Clone(l.c.permits) {
		f(w)
	}
}

// Get implements framework.WaitingPods.
func (l waitingPods) Get(uid types.UID) framework.WaitingPod {
	if p := l.c.pods[uid]; p != nil && p.waits != nil {
		return p.waits
	}
	return nil
}

// admit asks the profile's plugins about a pod that was given a node, and binds it
// unless one is against it or has it wait.
func (c *Core) admit(p *pod, n *cluster.Node, bind step.Bind, r *step.Ready) {
	profile := c.sched.Engine(p.parsed).Profile()
	for _, x := range profile.Reservers {
		if why := x.Reserve(p.parsed, n); why != nil {
			c.refuse(p, why, r)
			return
		}
		p.reserved = append(p.reserved, x)
	}
	w := &waitingPod{p: p, bind: bind, since: c.now}
	for _, x := range profile.Permitters {
		v := x.Permit(p.parsed, n, waitingPods{c})
		if v.Reason != nil {
			c.refuse(p, v.Reason, r)
			return
		}
		if v.Wait > 0 {
			w.votes = append(w.votes, vote{x.Name(), c.now.Add(min(v.Wait, framework.MaxPermitWait))})
		}
	}
	if len(w.votes) == 0 {
		r.Binds = append(r.Binds, bind)
		return
	}
	c.permits = append(c.permits, w)
	p.waits = w
	c.decided(r, step.Decision{Kind: step.Permitting, Pod: p.parsed.Name(), Node: p.assumed, Reason: fmt.Sprintf("waits for %v", w.Pending())})
}

// refuse takes the node away from a pod that a plugin is against.
func (c *Core) refuse(p *pod, why *framework.Reason, r *step.Ready) {
	message := ""
	if len(why.Messages) > 0 {
		message = why.Messages[0]
	}
	c.unplace(p, step.Refused, v1.PodReasonUnschedulable, unavailable(message), fmt.Sprintf("rejected by plugin %s: %s", why.Plugin, message), r)
}

// unavailable words a rejection after the choice of a node as kube-scheduler
// does: that node is all that was left.
func unavailable(why string) string { return fmt.Sprintf("0/1 nodes are available: 1 %s.", why) }

// expire ends the waiting of pods whose time is over, or whose node is gone.
func (c *Core) expire(r *step.Ready) {
	for _, w := range c.permits {
		if c.state.NodeByName(w.p.assumed) == nil && w.rejected == "" {
			w.rejected = fmt.Sprintf("node %s is gone", w.p.assumed)
		}
		for _, v := range w.votes {
			if !c.now.Before(v.until) && w.rejected == "" {
				w.rejected = fmt.Sprintf("rejected due to timeout after waiting %s at plugin %s", v.until.Sub(w.since), v.plugin)
			}
		}
	}
	c.resolve(r)
}

// resolve binds the waiting pods that all have allowed, and takes the node away
// from those that one has rejected. That may have plugins say more.
func (c *Core) resolve(r *step.Ready) {
	for {
		i := slices.IndexFunc(c.permits, func(w *waitingPod) bool { return w.rejected != "" || len(w.votes) == 0 })
		if i < 0 {
			return
		}
		w := c.permits[i]
		c.stopWaiting(w.p, w.rejected == "", r)
		if w.rejected == "" {
			c.decided(r, step.Decision{Kind: step.Permitted, Pod: w.p.parsed.Name(), Node: w.p.assumed})
			r.Binds = append(r.Binds, w.bind)
			continue
		}
		c.unplace(w.p, step.Refused, v1.PodReasonUnschedulable, unavailable(w.rejected), w.rejected, r)
		c.freed = true
	}
}

// stopWaiting forgets that a pod waits for permission, if it does.
func (c *Core) stopWaiting(p *pod, allowed bool, r *step.Ready) {
	if p.waits == nil {
		return
	}
	r.PermitWaits = append(r.PermitWaits, step.PermitWait{Allowed: allowed, Took: c.now.Sub(p.waits.since)})
	c.permits = slices.DeleteFunc(c.permits, func(w *waitingPod) bool { return w == p.waits })
	p.waits = nil
}

// unreserve tells the plugins that nothing comes of the node of a pod.
func (c *Core) unreserve(p *pod, r *step.Ready) {
	c.stopWaiting(p, false, r)
	for len(p.reserved) > 0 {
		last := len(p.reserved) - 1
		x := p.reserved[last]
		p.reserved = p.reserved[:last]
		x.Unreserve(p.parsed, p.assumed, waitingPods{c})
	}
}

// unplace takes the node away from a pod whose bind has failed or isn't to be,
// and has it tried again after a while: what was against it needn't be anything
// in the cluster, so no change of it tells.
func (c *Core) unplace(p *pod, kind step.DecisionKind, reason, message, why string, r *step.Ready) {
	uid := p.parsed.UID
	c.decided(r, step.Decision{Kind: kind, Pod: p.parsed.Name(), Profile: p.parsed.Object.Spec.SchedulerName, Node: p.assumed, Reason: why})
	if l := c.victims[uid]; l != nil {
		c.tellPreempted(p.parsed, l.by, " (in memory)", r)
	}
	c.state.Remove(uid)
	c.unreserve(p, r)
	c.unassume(p)
	p.assumed = ""
	c.reporting.Unschedulable(c.turn(r), &p.reports, p.parsed.Object, reason, message)
	item := c.queue.Get(uid)
	c.queue.SetPod(item, p.parsed)
	c.nomination.Restore(c.turn(r), &p.nomination, item)
	c.queue.Fail(c.now, item)
	c.victimGone(uid, r)
}

// bound takes note that the API has a pod on the node that it was given, once: it
// may show the pod before the answer to the bind comes, or after.
func (c *Core) bound(p *pod, r *step.Ready) {
	if p.told {
		return
	}
	p.told = true
	if c.cfg.ExternalScheduler {
		return
	}
	c.stopWaiting(p, true, r)
	p.reserved = nil
	for _, x := range c.sched.Engine(p.parsed).Profile().PostBinders {
		x.PostBind(p.parsed, p.assumed)
	}
	o := p.parsed.Object
	r.Events = append(r.Events, step.PodEvent(o, "Scheduled", "Binding",
		fmt.Sprintf("Successfully assigned %s/%s to %s", o.Namespace, o.Name, p.assumed)))
}

// permitWake returns when the waiting of a pod is over, zero for never.
func (c *Core) permitWake() (next time.Time) {
	for _, w := range c.permits {
		for _, v := range w.votes {
			if next.IsZero() || v.until.Before(next) {
				next = v.until
			}
		}
	}
	return next
}
