package core

import (
	"maps"
	"slices"
	"time"

	"github.com/berthproject/berth/core/lifecycle/planning"
	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
)

// Beside another scheduler, the autoscaler needs to know which pods have no node
// because there is none for them. Each pod is decided on as if Berth placed it, and
// counts as being there until the API shows where it is: so the room on the nodes
// isn't counted twice. Before each plan, all that hasn't come true is decided
// anew. Pods that the other scheduler hasn't called unschedulable ask for no nodes.

// expectation is where another scheduler is expected to put a pod.
type expectation struct {
	node  string
	since time.Time
}

// expect takes note of where a pod is taken to be.
func (c *Core) expect(p *pod, r *step.Ready) {
	if p.expected.node != p.assumed {
		c.decided(r, step.Decision{Kind: step.Expected, Pod: p.parsed.Name(), Node: p.assumed})
	}
	p.expected = expectation{p.assumed, c.now}
}

// reconsider takes back, before a plan, what was expected before the last one. It tells
// whether what is expected now may be planned with.
func (c *Core) reconsider() bool {
	if !c.cfg.ExternalScheduler || c.cfg.Autoscale == nil {
		return true
	}
	if c.scale.planning.State(c.now) != planning.Due {
		return false
	}
	for _, uid := range slices.Sorted(maps.Keys(c.pods)) {
		p := c.pods[uid]
		if p.assumed == "" || c.now.Sub(p.expected.since) < c.cfg.Autoscale.ScanInterval {
			continue
		}
		c.state.Remove(uid)
		p.assumed = ""
		c.nomination.Keep(&c.shared, &p.nomination, p.parsed)
		c.queue.Requeue(c.queue.Get(uid), p.parsed)
	}
	return true
}

// refused tells whether a scheduler has called a pod unschedulable.
func refused(o *v1.Pod) bool {
	return slices.ContainsFunc(o.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse && c.Reason == v1.PodReasonUnschedulable
	})
}
