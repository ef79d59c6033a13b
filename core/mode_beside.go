package core

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle/planning"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/record"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/core/weighing"
)

// beside is the mode of a core that only scales, beside another scheduler: decisions are
// what is expected of that one, and nothing is written to pods but events about scaling.
// Its profiles preempt nobody and ask no extenders (expecting).
type beside struct{ c *Core }

var _ mode = beside{}

func (m beside) standBy() mode { return standingBy{m} }
func (m beside) lead() mode    { return m }

func (m beside) class(p *cluster.Pod) *engine.Class { return deciding(m).class(p) }

// assumed has nothing to do: the other scheduler writes objects, and the API shows them.
func (beside) assumed(*record.Pod, *cluster.Pod, []cluster.ObjectChange) {}

func (m beside) placed(p *record.Pod, item *queue.Item, d scheduler.Decision, _ cluster.Seq) {
	m.c.expectation.Expect(m.c.turn, &p.Expected, item, d.Node.Name)
}

// rejected leaves the pod nominated as the other scheduler has it.
func (m beside) rejected(p *record.Pod, item *queue.Item, d scheduler.Decision) {
	c := m.c
	c.nomination.Renominate(c.turn, &p.Nomination, p.Parsed)
	c.queue.Reject(c.turn.Now, item, d.Diagnosis)
	c.wantPlan(p)
}

// failed leaves the pod nominated as the other scheduler has it.
func (m beside) failed(p *record.Pod, item *queue.Item, _ string) {
	c := m.c
	c.nomination.Renominate(c.turn, &p.Nomination, p.Parsed)
	c.queue.Fail(c.turn.Now, item)
}

func (beside) reportGate(*record.Pod) {}

// Members of pod groups are placed by the other scheduler, which may know groups: each is queued alone.
func (beside) reportHeld(*record.Pod, string, bool) {}
func (beside) decidesGroups() bool                  { return false }
func (beside) groupPreempts(*schedulingv1beta1.PodGroup, []*cluster.Pod, *framework.Victims, *weighing.Result) {
}
func (beside) memberRejected(*record.Pod, *queue.Item, string) {}

func (m beside) reportProblems(pod *cluster.Pod) { deciding(m).reportProblems(pod) }

func (m beside) nodeShown(obj *v1.Node, info *cluster.NodeInfo) *cluster.NodeInfo {
	return deciding(m).nodeShown(obj, info)
}

func (m beside) reportNode(n *cluster.NodeInfo) { deciding(m).reportNode(n) }
func (m beside) resumeNode(n *cluster.NodeInfo) { deciding(m).resumeNode(n) }

func (m beside) commitPlan(plan *autoscaler.Plan) { m.c.commitPlan(plan) }

// beforePlan takes back, when a plan is due, the expectations that are a scan interval old
// or older: their pods are decided on anew in this Step. When none was due before the pods
// are tried, none may be asked for after: it would see old expectations.
func (m beside) beforePlan() (mayPlan bool) {
	c := m.c
	if c.cfg.Autoscale == nil {
		return true
	}
	if c.scale.planning.State(c.turn.Now) != planning.Due {
		return false
	}
	c.expectation.TakeBack(c.turn, c.cfg.Autoscale.ScanInterval)
	return true
}

// asksForNode reports whether the other scheduler has called the pod unschedulable.
func (beside) asksForNode(obj *v1.Pod) bool {
	return slices.ContainsFunc(obj.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse && c.Reason == v1.PodReasonUnschedulable
	})
}
