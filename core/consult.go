package core

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berthproject/berth/core/step"

	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/scheduler"
)

// apply takes the answer if the pod still waits for it. What has happened since
// may have closed a node: the rules are asked again.
func (c *Core) consulted(in step.Consulted, r *step.Ready) {
	p, item := c.pods[in.UID], c.queue.Get(in.UID)
	if p == nil || !p.consulting || item == nil || item.Stage() != queue.InFlight {
		return
	}
	p.consulting = false
	seen := c.state.Head()
	if in.Err != nil {
		c.reporting.Unschedulable(c.turn(r), &p.reports, p.parsed.Object, "SchedulerError", in.Err.Error())
		c.queue.Fail(c.now, item)
		return
	}
	if p.candidates {
		c.settle(item, c.sched.DecideVictims(item.Pod(), in.Agreed), seen, r)
		return
	}
	allowed := map[string]int64{}
	for _, name := range in.Nodes {
		allowed[name] = in.Scores[name]
	}
	failed := make([]string, 0, len(in.Failed))
	for _, node := range sortedNodes(in.Failed) {
		failed = append(failed, in.Failed[node])
	}
	c.settle(item, c.sched.DecideAmong(item.Pod(), allowed, failed), seen, r)
}

func sortedNodes(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for name := range m {
		out = append(out, name)
	}
	slices.SortFunc(out, cmp.Compare[string])
	return out
}

// consult asks the extenders; the pod stays in flight until they answer.
func (c *Core) consult(item *queue.Item, d *scheduler.Decision, r *step.Ready) {
	p := c.pods[item.Pod().UID]
	p.consulting, p.candidates = true, d.Candidates != nil
	ask := step.Consult{UID: item.Pod().UID, Pod: item.Pod().Object, Nodes: d.Consult}
	what := fmt.Sprintf("%d nodes", len(d.Consult))
	if p.candidates {
		what = fmt.Sprintf("%d nodes that others would have to leave", len(d.Candidates))
	}
	for i := range d.Candidates {
		x := &d.Candidates[i]
		k := step.PreemptionCandidate{Node: c.state.Node(x.Node).Name, Violations: x.Violations}
		for _, v := range x.Pods {
			k.Victims = append(k.Victims, v.Object)
		}
		ask.Candidates = append(ask.Candidates, k)
	}
	c.decided(r, step.Decision{Kind: step.Consults, Pod: item.Pod().Name(), Reason: what})
	r.Consults = append(r.Consults, ask)
}
