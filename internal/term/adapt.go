package term

import (
	"cmp"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/lifecycle/nodegroups"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/core/weighing"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// This file makes explanations of the API's answers, so that they are printed by the functions that print what a
// simulation explains (sim/report).
// Fields that an older Berth doesn't send are zero, and a field that this program doesn't
// know was dropped when the answer was decoded: neither may make an explanation fail.

// at returns a time of an answer, nil for none.
// The API omits times that don't apply; explanations distinguish them by a nil pointer.
func at(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// baseUnits returns a quantity in the resource's base unit, as explanations have it.
// CPU is counted in thousandths, all else in the unit of its name. A text that is no
// quantity counts as 0: it comes from a server that may be of another version, and a wrong
// number in a sentence beats no answer.
func baseUnits(name, text string) int64 {
	q, err := door.Amount(text)
	if err != nil {
		return 0
	}
	if name == "cpu" {
		return q.MilliValue()
	}
	return q.Value()
}

// explanationOf returns what report.Explanation prints of a pod. Kinds of help that this
// program doesn't know are left out.
func explanationOf(x *v1alpha1.PodDetail) *explain.Explanation {
	out := &explain.Explanation{
		Pod: x.Namespace + "/" + x.Name, Outcome: x.Outcome, Node: x.Node, Message: x.Message, Attempts: x.Attempts,
		Queue: x.Queue, Queued: at(x.Queued), Tried: at(x.Tried), Backoff: at(x.Backoff),
		Nominated: x.Nominated, Victims: x.Victims, Preemption: x.Preemption, Reasons: whyOf(x.Rejections), Candidates: candidatesOf(x.Matrix), Scaling: scalingOf(x.Scaling),
	}
	// The group is printed for pending pods only: where a pod has its node, the group
	// explains nothing.
	if x.PodGroup != "" && x.Node == "" {
		out.PodGroup = x.Namespace + "/" + x.PodGroup
	}
	for _, p := range x.Permissions {
		out.Permissions = append(out.Permissions, explain.PermissionWait(p))
	}
	for _, d := range x.Details {
		out.Details = append(out.Details, explain.Detail(d))
	}
	for _, d := range x.Devices {
		out.Devices = append(out.Devices, explain.DeviceOf(d))
	}
	// The API has one list of what would help, by kind; explanations have a list for each.
	for _, h := range x.Helps {
		switch h.Kind {
		case "Relax":
			out.Relax = append(out.Relax, explain.Relaxed{Plugin: h.Plugin, Nodes: h.Nodes})
		case "Wait":
			out.WaitsFor = append(out.WaitsFor, explain.WaitsFor{Plugin: h.Plugin, Change: h.Text})
		case "Reserved":
			out.Reserved = append(out.Reserved, explain.Reserved{For: cmp.Or(h.For, "others"), Nodes: h.Nodes})
		}
	}
	return out
}

// whyOf returns the reasons with their shortfalls in base units, by which sim/report
// compares and prints them.
func whyOf(in []v1alpha1.Rejection) (out []step.Why) {
	for _, r := range in {
		w := step.Why{Plugin: r.Plugin, Message: r.Message, Nodes: r.Nodes}
		if s := r.Short; s != nil {
			w.Short = &step.Shortfall{Resource: s.Resource, Needed: baseUnits(s.Resource, s.Needed), Available: baseUnits(s.Resource, s.Available), Node: s.Node}
		}
		out = append(out, w)
	}
	return out
}

// candidatesOf returns the columns of a matrix. A row of an older Berth has no raw scores.
func candidatesOf(m *v1alpha1.ScoreMatrix) (out []explain.Candidate) {
	if m == nil {
		return nil
	}
	// Totals, scores and raw scores are rows as long as Nodes, but the answer is from
	// outside: a row that is too short leaves zeros instead of a panic.
	for i, node := range m.Nodes {
		c := explain.Candidate{Node: node}
		if i < len(m.Totals) {
			c.Score = m.Totals[i]
		}
		for _, row := range m.Rows {
			s := engine.PluginScore{Plugin: row.Plugin}
			if i < len(row.Scores) {
				s.Score = row.Scores[i]
			}
			if i < len(row.Raw) {
				s.Raw = row.Raw[i]
			}
			c.Scores = append(c.Scores, s)
		}
		out = append(out, c)
	}
	return out
}

// scalingOf returns what autoscaling does for a pod; nil where Berth only schedules.
func scalingOf(x *v1alpha1.Scaling) *explain.Scaling {
	if x == nil {
		return nil
	}
	out := &explain.Scaling{NotPlanned: x.NotPlanned, NextPlan: at(x.NextPlan), Event: x.Event, Ordered: orderOf(x.Ordered), Weighed: weighedOf(x.Weighing)}
	if c := x.Coming; c != nil {
		out.Coming = &explain.ComingNode{Group: c.Group, Node: c.Node, Reserved: c.Reserved, Stays: c.Stays, Expectation: *expectationOf(&c.Expectation)}
	}
	for _, g := range x.Groups {
		answer := explain.GroupAnswer{Group: g.Group, Answer: g.Answer, Reasons: g.Reasons, Plugin: g.Plugin, Detail: g.Detail}
		for _, m := range g.Missing {
			answer.Missing = append(answer.Missing, explain.Missing{Resource: m.Resource, Needed: baseUnits(m.Resource, m.Needed), Available: baseUnits(m.Resource, m.Available)})
		}
		out.Groups = append(out.Groups, answer)
	}
	return out
}

// weighedOf returns how preempting was weighed against a new node; nil where nothing was
// weighed.
func weighedOf(x *v1alpha1.Weighing) *weighing.Result {
	if x == nil {
		return nil
	}
	out := &weighing.Result{Policy: weighing.Policy(x.Policy), Chosen: weighing.Choice(x.Chosen), Why: x.Why}
	if p := x.Preempt; p != nil {
		out.Preempt = &weighing.Preemption{Node: p.Node, Victims: p.Victims, Cost: p.Cost}
	}
	if n := x.Node; n != nil {
		// Prices and costs are in the currency of the price file, an hour; the share is of
		// the node that the pod takes.
		out.Node = &weighing.Node{Group: n.Group, Price: float64(n.Price), Share: float64(n.Share), LaunchSeconds: n.Launch.Seconds(), Cost: n.Cost}
	}
	return out
}

// orderOf returns the last purchase of a group; nil if there was none since Berth started.
func orderOf(x *v1alpha1.Order) *explain.Order {
	if x == nil {
		return nil
	}
	return &explain.Order{Group: x.Group, At: x.At, From: x.From, To: x.To, Wanted: x.Wanted, Pods: x.Pods, Choice: choiceOf(x.Choice), Failed: x.Failed}
}

// choiceOf returns how the expander chose. The API says which share of the nodes is unused,
// as the mean of CPU and memory; explanations have the sum of both, hence the factor 2.
func choiceOf(x *v1alpha1.Choice) *autoscaler.Choice {
	if x == nil {
		return nil
	}
	out := &autoscaler.Choice{Plan: x.Plan, By: x.By, Unpriced: x.Unpriced, Nodes: x.Nodes, Price: float64(x.Price), LowerBound: float64(x.LowerBound)}
	for _, o := range x.Options {
		out.Options = append(out.Options, autoscaler.Option{Group: o.Group, With: o.With, Nodes: o.Nodes, Pods: o.Pods, Wasted: 2 * float64(o.Unused), Price: float64(o.Price)})
	}
	// Both fields are converted alike; the order in which the map is walked doesn't matter.
	for to, from := range map[**autoscaler.Alternative]*v1alpha1.Alternative{&out.Next: x.Next, &out.Dearest: x.Dearest} {
		if from != nil {
			*to = &autoscaler.Alternative{Group: from.Group, Nodes: from.Nodes, Price: float64(from.Price)}
		}
	}
	return out
}

// expectationOf returns an expectation: one of nothing, for nil.
func expectationOf(x *v1alpha1.Expectation) *explain.Expectation {
	if x == nil {
		return &explain.Expectation{}
	}
	return &explain.Expectation{Ordered: at(x.Ordered), Likely: at(x.Likely), Late: at(x.Late), Launches: x.Launches, GivenUp: at(x.GivenUp)}
}

// groupOf returns a node group without its instances, as lists have it.
func groupOf(x *v1alpha1.Group) *explain.GroupExplanation {
	out := &explain.GroupExplanation{
		Group: x.Name, Min: x.Min, Max: x.Max, Price: float64(x.Price), Target: x.Target, Ready: x.Ready, Launching: x.Launching, Deleting: x.Deleting,
		Room: x.Room, Limit: x.Limit, NextLimit: x.NextLimit, TemplateError: x.TemplateError, MaxOrder: x.MaxOrder, LaunchControl: x.LaunchControl, Ordered: orderOf(x.Ordered),
	}
	if b := x.Backoff; b != nil {
		backoff := explain.Backoff(*b)
		out.Backoff = &backoff
	}
	if x.Next != nil {
		out.Next = expectationOf(x.Next)
	}
	if l := x.Launches; l != nil {
		out.Launches = &explain.LaunchTimes{Launches: l.Launches, MedianSeconds: l.P50.Seconds(), P90Seconds: l.P90.Seconds()}
	}
	if f := x.Failed; f != nil {
		failure := explain.Failure(*f)
		out.Failed = &failure
	}
	return out
}

// groupDetailOf adds the instances that haven't become nodes, which only the answer about
// one group has.
func groupDetailOf(x *v1alpha1.GroupDetail) *explain.GroupExplanation {
	out := groupOf(&x.Group)
	for _, i := range x.Instances {
		out.Instances = append(out.Instances, nodegroups.Instance(i))
	}
	return out
}

// podGroupOf returns a pod group. An answer of which Known is false is about a group whose
// object Berth has not seen, though pods name it: it has no spec.
func podGroupOf(x *v1alpha1.PodGroupDetail) *explain.PodGroupExplanation {
	out := &explain.PodGroupExplanation{
		PodGroup: x.Namespace + "/" + x.Name, Outcome: x.Outcome, Message: x.Message, Placed: x.Placed, Permitting: x.Permitting, Until: at(x.Until),
		Waiting: x.Pending, Gated: x.Gated, AllNodes: x.AllNodes, Domains: x.Domains, Queue: x.Queue, Attempts: x.Attempts,
		Queued: at(x.Queued), Tried: at(x.Tried), Backoff: at(x.Backoff), Fitting: x.Fitting, Reasons: whyOf(x.Rejections), RoomMissing: x.RoomMissing,
	}
	if r := x.Room; r != nil {
		out.Room = &explain.PodGroupRoom{Members: r.Members, Nodes: r.Nodes, AllNodes: r.AllNodes, Since: r.Since, Until: at(r.Until), Ends: r.Ends}
	}
	if x.Known {
		out.Spec = &explain.PodGroupSpec{Gang: x.Policy == "Gang", MinCount: x.MinCount, Topology: x.Topology, Priority: x.Priority, WholeDisruption: x.WholeDisruption,
			Required: x.Required, Preferred: x.Preferred}
	}
	if c := x.Condition; c != nil {
		condition := explain.PodGroupCondition(*c)
		out.Condition = &condition
	}
	for _, n := range x.Nodes {
		out.Nodes = append(out.Nodes, explain.MemberNode(n))
	}
	for _, w := range x.Why {
		out.Why = append(out.Why, explain.MemberReason(w))
	}
	return out
}

// nodeOf returns a node as scale-down sees it. Callers must have checked that State isn't
// empty: a Berth that only schedules doesn't judge nodes.
func nodeOf(x *v1alpha1.NodeDetail) *explain.NodeExplanation {
	out := &explain.NodeExplanation{
		Node: x.Name, Group: x.Group, Ready: x.Ready, Price: float64(x.Price), State: string(x.State), Reason: autoscaler.KeptReason(x.Reason), Pod: x.Pod, Detail: x.Detail,
		Since: at(x.Since), Looked: at(x.Looked), Changes: x.Changes, Due: at(x.Due), WaitsFor: x.WaitsFor, Awaits: x.Awaits, Planned: at(x.Planned),
	}
	// A utilization of 0 is an answer; none at all means that it wasn't computed.
	if x.Utilization != nil {
		share := float64(*x.Utilization)
		out.Utilization = &share
	}
	if l := x.Leaving; l != nil {
		out.Leaving = &explain.Leaving{Step: l.Step, Why: l.Why, Next: at(l.Next)}
	}
	for _, b := range x.Blocks {
		out.Blocks = append(out.Blocks, explain.PodBlock(b))
	}
	for _, m := range x.Moves {
		out.Pods = append(out.Pods, explain.PodHome{Pod: m.Pod, Home: m.Node, Why: m.Why})
	}
	return out
}

// nodesOf sums all nodes up. The overview must say where scale-down stands.
func nodesOf(o *v1alpha1.Overview, m *v1alpha1.Money) *explain.NodesExplanation {
	out := &explain.NodesExplanation{Status: explain.ScaleDownStatus(o.ScaleDown.Status), Why: o.ScaleDown.Why, Planned: at(o.ScaleDown.Planned)}
	// The overview has sums by reason, and the answer about money those by group; together
	// they are what the core explains at once. They were asked one after the other and may
	// differ by a Step.
	for _, r := range o.ScaleDown.Reasons {
		out.Nodes += r.Nodes
		out.Reasons = append(out.Reasons, explain.NodesOfReason{State: string(r.State), Reason: autoscaler.KeptReason(r.Reason), NodesSum: explain.NodesSum{Nodes: r.Nodes, Price: float64(r.Price)}, Node: r.Node, Pod: r.Pod})
	}
	out.Price = float64(m.Price)
	for _, g := range m.Groups {
		of := explain.NodesOfGroup{Group: g.Group, NodesSum: explain.NodesSum{Nodes: g.Nodes, Price: float64(g.Price)}}
		of.Candidates = explain.NodesSum{Nodes: g.RemovableNodes, Price: float64(g.Removable)}
		of.Leaving = explain.NodesSum{Nodes: g.LeavingNodes, Price: float64(g.Leaving)}
		out.Groups = append(out.Groups, of)
	}
	return out
}
