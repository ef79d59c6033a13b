package core

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/scheduler"
)

// This file decides about pods that could have others leave a node for them: whether they
// preempt at once, or ask for a place on a node that is coming first. Who asks waits for the
// next plan (core/lifecycle/reservation), which is the only one that knows what coming nodes
// take; who had asked, or had a place, and lost it preempts at its next attempt. What must
// hold: a pod asks once for each time that it could preempt, and never longer than until.
//
// Without an autoscaler, and as long as nothing is coming, pods preempt as in
// kube-scheduler.

// weighing is whether a pod has asked for a place. The zero value is of a pod that hasn't.
type weighing struct {
	since time.Time // when it asked, or was given a place unasked
	// request is the number of the plan's request that it was pending in, the last; 0 for
	// none since it asked.
	request uint64
}

// asksForPlace implements scheduler.Scheduler.Asks.
func (c *Core) asksForPlace(pod *cluster.Pod, _ *engine.Candidate) bool {
	if c.cfg.Autoscale == nil || !c.scale.groups.Known() {
		return false
	}
	p := c.pods[pod.UID]
	return p.weighing.since.IsZero() && c.eligible(p).now && c.anyComing()
}

// anyComing tells whether a node is coming, in O(nodes) at its first call in a Step: no
// decision of a Step changes what is coming.
func (c *Core) anyComing() bool {
	if c.scale.survey == nil {
		c.scale.survey = scaleup.Survey(c.state, c.scale.groups.Conditions(c.turn.Now), &c.cfg.Autoscale.Readiness, c.turn.ServerNow())
	}
	return scaleup.Launching(c.scale.survey) > 0
}

// maxAsking is how long a pod waits at most for what a plan says of it. A plan is made
// within a scan interval, or within two where pods are always left to try.
func (c *Core) maxAsking() time.Duration { return 2 * c.cfg.Autoscale.ScanInterval }

// noteAsking takes note of what a decision that found no node for a pod means for its place:
// the pod asks for one, waits for its own as before, or has none.
func (c *Core) noteAsking(p *pod, item *queue.Item, d *scheduler.Decision) {
	uid := item.Pod().UID
	switch {
	case d.Asks:
		p.weighing = weighing{since: c.turn.Now}
		c.reservation.Ask(c.turn, uid, c.turn.Now.Add(c.maxAsking()))
		c.scale.planning.Want(c.turn.Now)
	case !c.reservation.WaitsFor(uid):
		if !p.weighing.since.IsZero() {
			p.planned = false // what was planned for it holds no more
		}
		p.weighing = weighing{}
	}
}

// forgetAsking lets a pod ask again, the next time that it could preempt, unless it has or
// asks for a place still.
func (c *Core) forgetAsking(p *pod) {
	if !c.reservation.WaitsFor(p.parsed.UID) {
		p.weighing = weighing{}
	}
}

// mustNotBuy says in a request that no nodes are bought for pods that ask: they would
// preempt.
func mustNotBuy(req *autoscaler.Request, asking []*pod) {
	if asking == nil {
		return
	}
	req.NotFor = map[types.UID]bool{}
	for _, p := range asking {
		req.NotFor[p.parsed.UID] = true
	}
}

// noteRequested takes note of which pods that ask are in a request.
func (c *Core) noteRequested(req *autoscaler.Request) {
	for uid := range req.NotFor { // in any order: each for itself
		c.pods[uid].weighing.request = req.Number
	}
}

// join gives pods the room that a plan has found on a node that is coming.
func (c *Core) join(j *autoscaler.Join) {
	if n := c.state.NodeByName(j.Node); j.Node != "" && (n == nil || n.Group != j.Group) {
		return
	}
	var pods []types.UID
	for _, uid := range j.Pods {
		if c.waits(uid) {
			pods = append(pods, uid)
		}
	}
	c.reservation.Join(c.turn, j, pods)
	c.noteGiven(pods)
}

// noteGiven has pods that were given a place not ask for another when they lose it.
func (c *Core) noteGiven(pods []types.UID) {
	for _, uid := range pods {
		if p := c.pods[uid]; p.weighing.since.IsZero() {
			p.weighing.since = c.turn.Now
		}
	}
}

// answerAsking has the pods tried that asked for a place, that a plan was made for, and that
// it has no place for.
func (c *Core) answerAsking(plan *autoscaler.Plan) {
	for _, uid := range c.reservation.Asking() {
		if c.pods[uid].weighing.request == plan.Request {
			c.reservation.Free(c.turn, uid)
		}
	}
}
