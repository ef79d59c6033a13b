package core

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle/candidates"
	"github.com/berthproject/berth/core/lifecycle/comparison"
	"github.com/berthproject/berth/core/lifecycle/nodecomparison"
	"github.com/berthproject/berth/core/lifecycle/preemption"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/record"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/core/weighing"
)

// shadowing is the mode of a core that decides as a leader would and carries out nothing: what
// another scheduler does is compared with what it has decided (core/lifecycle/comparison).
// Nothing is said to people either: the other scheduler says what happens.
type shadowing struct{ c *Core }

var _ mode = shadowing{}

func (m shadowing) standBy() mode { return standingBy{m} }
func (m shadowing) lead() mode    { return m }

func (m shadowing) class(p *cluster.Pod) *engine.Class { return m.c.sched.Class(p) }

func (shadowing) assumed(*record.Pod, *cluster.Pod, []cluster.ObjectChange) {}

func (m shadowing) placed(p *record.Pod, item *queue.Item, d scheduler.Decision, seen cluster.Seq) {
	m.c.notePlaced(item, &d, seen)
	m.c.comparison.PodDecided(m.c.turn, &p.Compared, item, &d, p.Seen)
}

// rejected leaves the pod nominated as the other scheduler has it. Victims that a leader would
// ask to leave are in the ledger, once for as long as the reason is the same.
func (m shadowing) rejected(p *record.Pod, item *queue.Item, d scheduler.Decision) {
	c := m.c
	// By PreemptFirst a pod that asks for a place takes it on a node that is coming, or preempts.
	preempts := d.Victims != nil || d.Asks() && c.policyOf(item.Pod()) == weighing.PreemptFirst
	if anew := c.comparison.PodRejected(c.turn, &p.Compared, d.Message, preempts, p.Seen); anew && d.Victims != nil {
		preemption.Note(c.turn, item.Pod(), d.Victims, d.Weighed)
	}
	c.nomination.Renominate(c.turn, &p.Nomination, p.Parsed)
	c.queue.Reject(c.turn.Now, item, d.Diagnosis)
	if !preempts {
		c.wantPlan(p)
	}
}

// failed leaves the pod nominated as the other scheduler has it.
func (m shadowing) failed(p *record.Pod, item *queue.Item, _ string) {
	c := m.c
	c.nomination.Renominate(c.turn, &p.Nomination, p.Parsed)
	c.queue.Fail(c.turn.Now, item)
}

func (shadowing) reportHeld(*record.Pod, string, bool) {}
func (shadowing) decidesGroups() bool                  { return false }

// groupPreempts has the victims that a leader would ask to leave in the ledger.
func (m shadowing) groupPreempts(g *schedulingv1beta1.PodGroup, members []*cluster.Pod, victims *framework.Victims, weighed *weighing.Result) {
	preemption.NoteGroup(m.c.turn, g, len(members), victims, weighed)
}

// memberRejected leaves the member nominated as the other scheduler has it.
func (m shadowing) memberRejected(p *record.Pod, _ *queue.Item, why string) {
	m.c.nomination.Renominate(m.c.turn, &p.Nomination, p.Parsed)
	m.c.comparison.PodRejected(m.c.turn, &p.Compared, why, false, p.Seen)
}

func (shadowing) reportGate(*record.Pod)       {}
func (shadowing) reportProblems(*cluster.Pod)  {}
func (shadowing) reportNode(*cluster.NodeInfo) {}

func (shadowing) nodeShown(_ *v1.Node, info *cluster.NodeInfo) *cluster.NodeInfo { return info }

// resumeNode does nothing: what others have begun with nodes is compared, and theirs.
func (shadowing) resumeNode(*cluster.NodeInfo) {}

func (shadowing) beforePlan() bool         { return true }
func (shadowing) asksForNode(*v1.Pod) bool { return true }

// commitPlan compares what a leader would begin by a plan. A leader would begin with fewer nodes at
// a time, by --max-scale-down-parallelism and --max-drain-parallelism; here nothing ends by which
// others could begin.
func (m shadowing) commitPlan(plan *autoscaler.Plan) {
	c := m.c
	if !c.cfg.Autoscale.DisableScaleDown {
		c.scale.keptNodes.CommitPlan(c.turn, plan)
	}
	due := slices.DeleteFunc(c.scale.candidates.CommitPlan(c.turn, plan), func(d candidates.Due) bool {
		n := c.state.NodeByName(d.Node)
		return len(d.WaitsFor) > 0 || n.HasTaint(autoscaler.ToBeDeletedTaint) || c.nodeComparison.Wished(d.Node) || c.scale.groups.ScaleDownDelayed(c.turn.Now, n.Group)
	})
	c.nodeComparison.CommitPlan(c.turn, plan, c.withinNodeBudgets(due), c.waits, func(uid types.UID) string { return c.pods[uid].Parsed.Name() })
}

// ShadowReport sums up what a shadow has compared.
type ShadowReport struct {
	ShadowPods
	// Nodes is about nodes; nil of a shadow without a provider.
	Nodes *ShadowNodes `json:"nodes,omitempty"`
}

// ShadowPods sums up what a shadow has compared of placements.
type ShadowPods = comparison.Report

// ShadowNodes sums up what a shadow has compared of nodes.
type ShadowNodes = nodecomparison.Report

// ShadowHours are node hours, and what they cost.
type ShadowHours = nodecomparison.Hours

// ShadowQuantiles are how long pods have waited for a node.
type ShadowQuantiles = comparison.Quantiles

// ShadowReport returns what a shadow has compared; nil of a core that is no shadow.
func (c *Core) ShadowReport() *ShadowReport {
	if c.comparison == nil {
		return nil
	}
	r := &ShadowReport{ShadowPods: *c.comparison.Report()}
	if c.nodeComparison != nil {
		r.Nodes = c.nodeComparison.Report(c.turn.Now)
	}
	return r
}
