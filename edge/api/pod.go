package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/core/weighing"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// This file answers pods/NAMESPACE/NAME. The core is asked once, for the pod's line and its explanation; and for all pods, an
// answer that all viewers share, only where there is no such pod and similar names are suggested.
//
// What must hold: a pod whose namespace the viewer may not read is answered as one that isn't there, byte for byte;
// otherwise the difference would tell which names exist.

// pod answers pods/NAMESPACE/NAME. A pod that has gone is answered from the ledger.
func (a *API) pod(r *request) (any, error) {
	namespace, name, ok := strings.Cut(r.object, "/")
	if !ok || strings.Contains(name, "/") || namespace == "" || name == "" {
		return nil, bad("give the pod as pods/NAMESPACE/NAME")
	}
	// Made before anything is looked up, so that a pod of a hidden namespace takes the same way as one that isn't there.
	gone := missing("pod %s not found; it may have finished, or you may not list pods in its namespace", r.object)
	if !r.viewer.sees(namespace) {
		return nil, gone
	}
	// The pod may be gone: then both are empty.
	type found struct {
		line explain.PodLine
		ok   bool
		x    explain.Explanation
	}
	x, at, err := a.questions.of(r.Context(), "pods/"+r.object, func(c *core.Core) (any, error) {
		f := &found{}
		f.line, f.x, f.ok = c.View().PodDetail(namespace, name)
		return f, nil
	})
	if err != nil {
		return nil, err
	}
	f, decisions := x.(*found), a.opt.Ledger.Of(r.object)
	// A pod that was deleted a minute ago is still asked about: as long as the ledger has decisions about it, there is an
	// answer, whose pod has nothing but its name.
	if !f.ok && len(decisions) == 0 {
		lines, _, err := a.podLines(r)
		if err != nil {
			return nil, err
		}
		return nil, missing("%w%s", gone, similarPods(r.viewer, lines, r.object))
	}
	out := &v1alpha1.PodDetail{At: at, Pod: v1alpha1.Pod{Namespace: namespace, Name: name}, Timeline: []v1alpha1.TimelineEntry{}, Decisions: []v1alpha1.Decision{}}
	if f.ok {
		out.Pod = pod(&f.line)
		podDetail(r.viewer, &f.x, out)
		out.Timeline = append(out.Timeline, beginning(&f.line)...)
	}
	for j := range decisions {
		d := &decisions[j]
		shown := decision(r.viewer, d, whole)
		out.Decisions = append(out.Decisions, shown)
		text := shown.Text
		// The entry stays, as it would without the text: gaps between the times would tell that something was left out.
		if text == "" && shown.Hidden {
			text = "(it names pods that you may not list)"
		}
		out.Timeline = append(out.Timeline, v1alpha1.TimelineEntry{At: d.Time.UTC(), Kind: string(d.Kind), Text: text, Seq: d.Seq})
	}
	// Stable, since times of the object have seconds: what comes first at one time is what was added first.
	slices.SortStableFunc(out.Timeline, func(a, b v1alpha1.TimelineEntry) int { return a.At.Compare(b.At) })
	return out, nil
}

// similarPods returns the names of pods of the same namespace that are most like one, as the end of a
// sentence; "" for none. Only names of a namespace that the viewer may read are compared: a suggestion is as good as a
// list.
func similarPods(v *viewer, lines *podLines, pod string) string {
	namespace, name, _ := strings.Cut(pod, "/")
	var names []string
	for i := range lines.all {
		if o := lines.all[i].Object; o.Namespace == namespace && v.sees(namespace) {
			names = append(names, o.Name)
		}
	}
	return Similar("there ", name, names)
}

// beginning returns what a pod's object says about its time before decisions, and when it was bound. It has no decision
// behind it, so its entries have no number: a pod that was bound by another scheduler, or before Berth started, has only
// these.
func beginning(p *explain.PodLine) (out []v1alpha1.TimelineEntry) {
	if at := p.Object.CreationTimestamp; !at.IsZero() {
		out = append(out, v1alpha1.TimelineEntry{At: at.UTC(), Kind: "Created"})
	}
	if !p.Since.IsZero() {
		out = append(out, v1alpha1.TimelineEntry{At: p.Since, Kind: "Seen", Text: "Berth first saw it without a node"})
	}
	for _, c := range p.Object.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			out = append(out, v1alpha1.TimelineEntry{At: c.LastTransitionTime.UTC(), Kind: "Bound", Text: "bound to " + p.Node})
		}
	}
	return out
}

// podDetail fills in what is explained of a pod. What names other pods (victims, holders of reserved room) is cut to what
// the viewer may read; names of nodes and node groups aren't.
func podDetail(v *viewer, x *explain.Explanation, out *v1alpha1.PodDetail) {
	out.Outcome, out.Message, out.Queue, out.Attempts = x.Outcome, x.Message, x.Queue, x.Attempts
	out.Queued, out.Tried, out.Backoff = timeOf(x.Queued), timeOf(x.Tried), timeOf(x.Backoff)
	out.Nominated, out.Preemption = x.Nominated, x.Preemption
	out.Node = cmp.Or(x.Node, out.Node)
	out.Victims, out.Hidden = v.pods(x.Victims)
	for _, p := range x.Permissions {
		out.Permissions = append(out.Permissions, v1alpha1.Permission(p))
	}
	out.Rejections = rejections(x.Reasons)
	for _, d := range x.Details {
		out.Details = append(out.Details, v1alpha1.NodesLack(d))
	}
	for _, d := range x.Devices {
		out.Devices = append(out.Devices, v1alpha1.DeviceOfPod(d))
	}
	out.Helps = helps(v, x)
	out.Matrix, out.Scaling = matrix(x), scaling(x.Scaling)
}

// helps returns what would help a pod that waits, in this order: rules that alone reject nodes, changes after which it is
// tried again, and room that is reserved for others.
func helps(v *viewer, x *explain.Explanation) (out []v1alpha1.Help) {
	for _, r := range x.Relax {
		out = append(out, v1alpha1.Help{Kind: "Relax", Plugin: r.Plugin, Nodes: r.Nodes, Text: fmt.Sprintf("%s would take it without %s", count(r.Nodes, "node", "nodes"), r.Plugin)})
	}
	for _, w := range x.WaitsFor {
		out = append(out, v1alpha1.Help{Kind: "Wait", Plugin: w.Plugin, Text: w.Change})
	}
	for _, k := range x.Reserved {
		help := v1alpha1.Help{Kind: "Reserved", Nodes: k.Nodes, Text: fmt.Sprintf("room on %s is reserved for others", count(k.Nodes, "node", "nodes"))}
		// For names a pod, a pod group or headroom, and doesn't say which; so it is shown only where nothing is hidden.
		if v.all {
			help.For, help.Text = k.For, fmt.Sprintf("room on %s is reserved for %s", count(k.Nodes, "node", "nodes"), k.For)
		}
		out = append(out, help)
	}
	return out
}

// matrix returns the scores of the best nodes, nil without any. Rows are plugins in the order in which the first node has
// them, columns are nodes from the best on. A plugin that scored some of the nodes alone has 0 for the others.
func matrix(x *explain.Explanation) *v1alpha1.ScoreMatrix {
	if len(x.Candidates) == 0 {
		return nil
	}
	// -1 when the pod's node isn't among the best now: it may have been when the pod was placed.
	m := &v1alpha1.ScoreMatrix{Chosen: -1}
	rows := map[string]*v1alpha1.ScoreRow{}
	var plugins []string
	for i, c := range x.Candidates {
		if c.Node == x.Node {
			m.Chosen = i
		}
		m.Nodes, m.Totals = append(m.Nodes, c.Node), append(m.Totals, c.Score)
		for _, s := range c.Scores {
			if rows[s.Plugin] == nil {
				rows[s.Plugin] = &v1alpha1.ScoreRow{Plugin: s.Plugin, Scores: make([]int64, len(x.Candidates)), Raw: make([]int64, len(x.Candidates))}
				plugins = append(plugins, s.Plugin)
			}
			rows[s.Plugin].Scores[i], rows[s.Plugin].Raw[i] = s.Score, s.Raw
		}
	}
	for _, p := range plugins {
		m.Rows = append(m.Rows, *rows[p])
	}
	return m
}

// scaling returns what node groups do for a pod; nil where the core says nothing of them, as without an autoscaler.
func scaling(x *explain.Scaling) *v1alpha1.Scaling {
	if x == nil {
		return nil
	}
	out := &v1alpha1.Scaling{NotPlanned: x.NotPlanned, NextPlan: timeOf(x.NextPlan), Event: x.Event, Ordered: order(x.Ordered), Weighed: weighed(x.Weighed), Weighing: weighingOf(x.Weighed)}
	if c := x.Coming; c != nil {
		out.Coming = &v1alpha1.ComingNode{Group: c.Group, Node: c.Node, Reserved: c.Reserved, Stays: c.Stays}
		if e := expectation(&c.Expectation); e != nil {
			out.Coming.Expectation = *e
		}
	}
	for i := range x.Groups {
		out.Groups = append(out.Groups, groupAnswer(&x.Groups[i]))
	}
	return out
}

// groupAnswer returns what a node group does for a pod: whether a node of it would take the pod, and otherwise why not.
// What is missing is compared with an empty node of the group, so shortfalls name no node.
func groupAnswer(g *explain.GroupAnswer) v1alpha1.GroupAnswer {
	out := v1alpha1.GroupAnswer{Group: g.Group, Answer: g.Answer, Reasons: g.Reasons, Plugin: g.Plugin, Detail: g.Detail}
	for _, m := range g.Missing {
		out.Missing = append(out.Missing, shortfall(m.Resource, m.Needed, m.Available, ""))
	}
	return out
}

// weighed says what became of a weighing, in a sentence that ends without a full stop; "" for none.
func weighed(w *weighing.Result) string {
	if w == nil {
		return ""
	}
	out := fmt.Sprintf("by policy %s it chose %s", w.Policy, w.Chosen)
	if w.Why != "" {
		out += ": " + w.Why
	}
	return out
}

// weighingOf returns what a weighing has compared, nil for none. Costs are in the currency of meta; Price is an hour's,
// and Share is the part of the node that the pod would use.
func weighingOf(w *weighing.Result) *v1alpha1.Weighing {
	if w == nil {
		return nil
	}
	out := &v1alpha1.Weighing{Policy: string(w.Policy), Chosen: string(w.Chosen), Why: w.Why}
	if p := w.Preempt; p != nil {
		out.Preempt = &v1alpha1.PreemptionCost{Node: p.Node, Victims: p.Victims, Cost: p.Cost}
	}
	if n := w.Node; n != nil {
		out.Node = &v1alpha1.NodeCost{Group: n.Group, Price: v1alpha1.Price(n.Price), Share: v1alpha1.Share(n.Share), Launch: seconds(n.LaunchSeconds), Cost: n.Cost}
	}
	return out
}

// shortfall returns by how much a resource is too scarce on a node, or on an empty node of a group when node is "". Amounts
// are in the base unit of the resource: thousandths of a core, bytes, pieces.
func shortfall(resource string, needed, available int64, node string) v1alpha1.Shortfall {
	write := func(amount int64) string { q := quantity(v1.ResourceName(resource), amount); return q.String() }
	return v1alpha1.Shortfall{Resource: resource, Needed: write(needed), Available: write(available), Node: node}
}

// rejections returns why nodes were rejected, by plugin and message: the words of kube-scheduler, with the nearest node.
// A message counts nodes and names no pod, so that nothing is cut here.
func rejections(in []step.Why) (out []v1alpha1.Rejection) {
	for _, w := range in {
		r := v1alpha1.Rejection{Plugin: w.Plugin, Message: w.Message, Nodes: w.Nodes}
		if s := w.Short; s != nil {
			short := shortfall(s.Resource, s.Needed, s.Available, s.Node)
			r.Short = &short
		}
		out = append(out, r)
	}
	return out
}
