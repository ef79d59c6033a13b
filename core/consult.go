package core

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/scheduler"
)

// Consult asks the extenders that a pod concerns which of the nodes it may go
// to, and how good they are; or, when no node takes it, on which they agree to
// its taking the place of others.
type Consult struct {
	UID   types.UID
	Pod   *v1.Pod
	Nodes []string // that the rules allow, by name
	// Candidates are the nodes where others would have to leave, by name.
	Candidates []PreemptionCandidate `json:",omitempty"`
}

// PreemptionCandidate is a node with the pods that would have to leave it.
type PreemptionCandidate struct {
	Node       string
	Victims    []*v1.Pod
	Violations int // of disruption budgets
}

// Consulted is the outcome of a Consult. Nodes that it names beyond those that
// were asked about don't count.
type Consulted struct {
	UID   types.UID
	Nodes []string // that all extenders allow
	// Failed are the reasons for others, by node.
	Failed map[string]string
	// Scores are added to the nodes' own, weighted already.
	Scores map[string]int64
	Err    error // of an extender that isn't ignorable
	// Agreed are the victims that all agree to, when that was asked; by name of
	// the node.
	Agreed []scheduler.Agreed `json:",omitempty"`
}

// apply takes the answer if the pod still waits for it. What has happened since
// may have closed a node: the rules are asked again.
func (in Consulted) apply(c *Core, r *Ready) {
	p, item := c.pods[in.UID], c.queue.Get(in.UID)
	if p == nil || !p.consulting || item == nil || item.Place() != queue.InFlight {
		return
	}
	p.consulting = false
	seen := c.state.Head()
	if in.Err != nil {
		c.unschedulable(p, "SchedulerError", in.Err.Error(), r)
		c.queue.Fail(c.now, item)
		return
	}
	if p.candidates {
		c.settle(item, c.sched.DecideVictims(item, in.Agreed), seen, r)
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
	c.settle(item, c.sched.DecideAmong(item, allowed, failed), seen, r)
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
func (c *Core) consult(item *queue.Item, d *scheduler.Decision, r *Ready) {
	p := c.pods[item.Pod.UID]
	p.consulting, p.candidates = true, d.Candidates != nil
	ask := Consult{UID: item.Pod.UID, Pod: item.Pod.Object, Nodes: d.Consult}
	what := fmt.Sprintf("%d nodes", len(d.Consult))
	if p.candidates {
		what = fmt.Sprintf("%d nodes that others would have to leave", len(d.Candidates))
	}
	for i := range d.Candidates {
		x := &d.Candidates[i]
		k := PreemptionCandidate{Node: c.state.Node(x.Node).Name, Violations: x.Violations}
		for _, v := range x.Pods {
			k.Victims = append(k.Victims, v.Object)
		}
		ask.Candidates = append(ask.Candidates, k)
	}
	c.decided(r, Decision{Kind: Consults, Pod: item.Pod.Name(), Reason: what})
	r.Consults = append(r.Consults, ask)
}
