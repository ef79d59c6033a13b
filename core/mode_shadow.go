package core

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/lifecycle/comparison"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/core/step"
)

// shadowing is the mode of a core that decides as a leader would and carries out nothing: what
// another scheduler does is compared with what it has decided (core/lifecycle/comparison).
// Nothing is said to people either: the other scheduler says what happens.
type shadowing struct{ c *Core }

var _ mode = shadowing{}

func (m shadowing) standBy() mode { return standingBy{m} }
func (m shadowing) lead() mode    { return m }

func (m shadowing) class(p *cluster.Pod) *engine.Class { return m.c.sched.Class(p) }

func (m shadowing) placed(p *pod, item *queue.Item, d *scheduler.Decision, seen cluster.Seq) {
	m.c.notePlaced(item, d, seen)
	m.c.comparison.Decided(m.c.turn, &p.compared, item, d, p.seen)
}

// rejected leaves the pod nominated as the other scheduler has it. Victims that a leader would
// ask to leave are in the ledger, once for as long as the reason is the same.
func (m shadowing) rejected(p *pod, item *queue.Item, d *scheduler.Decision) {
	c := m.c
	if anew := c.comparison.Rejected(c.turn, &p.compared, d.Message, p.seen); anew && d.Victims != nil {
		c.notePreempts(item, d)
	}
	c.nomination.Keep(c.turn, &p.nomination, p.parsed)
	c.queue.Reject(c.turn.Now, item, d.Diagnosis)
}

// notePreempts enters into the ledger which pods would leave a node for a pod.
func (c *Core) notePreempts(item *queue.Item, d *scheduler.Decision) {
	names := make([]string, len(d.Victims.Pods))
	for i, v := range d.Victims.Pods {
		names[i] = v.Name()
	}
	c.turn.Decide(step.Decision{Kind: step.Preempts, Pod: item.Pod().Name(), Node: c.state.Node(d.Victims.Node).Name, Victims: names, Weighed: d.Weighed,
		Reason: fmt.Sprintf("%d pods of lower priority would leave, %d of them against a disruption budget", len(names), d.Victims.Violations)})
}

func (shadowing) reportGate(*pod)              {}
func (shadowing) reportProblems(*cluster.Pod)  {}
func (shadowing) reportNode(*cluster.NodeInfo) {}

func (shadowing) nodeShown(_ *v1.Node, info *cluster.NodeInfo) *cluster.NodeInfo { return info }

func (shadowing) beforePlan() bool         { return true }
func (shadowing) asksForNode(*v1.Pod) bool { return false }

// ShadowReport sums up what a shadow has compared.
type ShadowReport = comparison.Report

// ShadowQuantiles are how long pods have waited for a node.
type ShadowQuantiles = comparison.Quantiles

// ShadowReport returns what a shadow has compared; nil of a core that is no shadow.
func (c *Core) ShadowReport() *ShadowReport {
	if c.comparison == nil {
		return nil
	}
	return c.comparison.Report()
}
