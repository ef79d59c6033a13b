package api

import (
	"slices"
	"strings"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/explain"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// This file answers podgroups and podgroups/NAMESPACE/NAME. A list is one question, O(pods of groups), which all viewers
// share; a group is one question more, for its explanation.
//
// What must hold: a group is hidden as a pod of its namespace would be, and whatever is said of one tells nothing of
// pods elsewhere.

// podGroups answers podgroups: ?namespace= may be repeated, ?q= is a part of namespace/name.
func (a *API) podGroups(r *request) (any, error) {
	x, at, err := a.questions.pageOf(r, "podgroups", func(c *core.Core) (any, error) { return c.View().PodGroupLines(), nil })
	if err != nil {
		return nil, err
	}
	out := v1alpha1.PodGroupList{List: v1alpha1.List{At: at}, Items: []v1alpha1.PodGroup{}}
	var found []*explain.PodGroupLine
	lines := x.([]explain.PodGroupLine)
	// Pointers into the shared answer: nothing of it is copied for groups that don't match.
	for i := range lines {
		line := &lines[i]
		if wanted := r.query["namespace"]; len(wanted) > 0 && !slices.Contains(wanted, line.Key.Namespace) {
			continue
		}
		// At most one question to the API server for each namespace, however many groups it has.
		sees := r.viewer.sees(line.Key.Namespace)
		// A text that is searched for never matches a hidden name, not even in the count.
		if q := r.query.Get("q"); q != "" && (!sees || !strings.Contains(line.Key.String(), q)) {
			continue
		}
		// Counted whether or not it may be shown: total and hidden add up for everybody.
		if out.Total++; sees {
			found = append(found, line)
		} else {
			out.Hidden++
		}
	}
	found, err = page(r.query, found, func(l **explain.PodGroupLine) string { return (*l).Key.Namespace + "\x00" + (*l).Key.Name }, &out.List)
	if err != nil {
		return nil, badRequest{err}
	}
	for _, line := range found {
		out.Items = append(out.Items, podGroupRow(line))
	}
	return out, nil
}

// podGroupRow returns a pod group in one row, without asking the core for more than the list has: an explanation of each of
// 10,000 groups would take it seconds. The message is Berth's own while a member is held back, and otherwise that
// of the object's conditions, which another scheduler may have written. A group of which only pods are known has no
// policy.
func podGroupRow(l *explain.PodGroupLine) v1alpha1.PodGroup {
	out := v1alpha1.PodGroup{Namespace: l.Key.Namespace, Name: l.Key.Name, Placed: l.Placed, Pending: l.Pending, Gated: l.Gated, Queue: l.Queue, Attempts: l.Attempts, Message: l.Held}
	if o := l.Object; o != nil {
		out.Created, out.Topology = o.CreationTimestamp.UTC(), cluster.RequiredTopology(o)
		// Exactly one of the two is set in an object that the API server has taken; neither, in one of a later version.
		if gang := o.Spec.SchedulingPolicy.Gang; gang != nil {
			out.Policy, out.MinCount = "Gang", int(gang.MinCount)
		} else if o.Spec.SchedulingPolicy.Basic != nil {
			out.Policy = "Basic"
		}
		// The first condition with words counts: a row has room for one.
		for _, c := range o.Status.Conditions {
			if out.Message == "" {
				out.Message = c.Message
			}
		}
	}
	return out
}

// podGroup answers podgroups/NAMESPACE/NAME. A group that has gone is answered from the ledger.
func (a *API) podGroup(r *request) (any, error) {
	namespace, name, ok := strings.Cut(r.object, "/")
	if !ok || strings.Contains(name, "/") || namespace == "" || name == "" {
		return nil, bad("give the pod group as podgroups/NAMESPACE/NAME")
	}
	// The same answer as for a group that isn't there, and before the core is asked: not even the time it takes tells.
	if !r.viewer.sees(namespace) {
		return nil, noSuch("pod group", r.object, nil)
	}
	// What the core's goroutine hands out. Nothing of it changes afterwards, though the group may.
	type found struct {
		line  explain.PodGroupLine
		x     explain.PodGroupExplanation
		ok    bool
		names []string // of all groups, when there is none of this name
	}
	got, at, err := a.questions.of(r.Context(), "podgroups/"+r.object, func(c *core.Core) (any, error) {
		v, f := c.View(), &found{line: explain.PodGroupLine{Key: cluster.PodGroupKey{Namespace: namespace, Name: name}}}
		// Names are read only for a group that is missing; there may be thousands.
		if f.x, f.ok = v.ExplainPodGroup(namespace, name); !f.ok {
			f.names = v.PodGroupNames()
		}
		// The row is looked for in the list, O(groups), rather than made a second way: both paths then say the same.
		for _, line := range v.PodGroupLines() {
			if line.Key == f.line.Key {
				f.line = line
			}
		}
		return f, nil
	})
	if err != nil {
		return nil, err
	}
	f, decisions := got.(*found), a.opt.Ledger.OfPodGroup(r.object)
	// Suggestions are cut to what the viewer may read, as a list would be.
	if !f.ok && len(decisions) == 0 {
		return nil, noSuch("pod group", r.object, slices.DeleteFunc(slices.Clone(f.names), func(name string) bool { return r.viewer.pod(name) == "" }))
	}
	out := &v1alpha1.PodGroupDetail{At: at, PodGroup: podGroupRow(&f.line), Decisions: []v1alpha1.Decision{}}
	podGroupDetail(&f.x, out)
	for i := range decisions {
		out.Decisions = append(out.Decisions, decision(r.viewer, &decisions[i], whole))
	}
	return out, nil
}

// podGroupDetail fills in what is explained of a pod group. Members counted there count in place of those of the row: both
// are of one moment, but the explanation has looked at each member. Reasons and rejections are of members of this group
// alone, which the viewer may read; room names nodes and no pods.
func podGroupDetail(x *explain.PodGroupExplanation, out *v1alpha1.PodGroupDetail) {
	out.Outcome, out.Message, out.Placed, out.Pending, out.Gated = x.Outcome, x.Message, x.Placed, x.Waiting, x.Gated
	out.Permitting, out.Until, out.Fitting = x.Permitting, timeOf(x.Until), x.Fitting
	out.Queue, out.Attempts, out.Queued, out.Tried, out.Backoff = x.Queue, x.Attempts, timeOf(x.Queued), timeOf(x.Tried), timeOf(x.Backoff)
	out.AllNodes, out.Domains, out.Rejections = x.AllNodes, x.Domains, rejections(x.Reasons)
	// Without an object members wait for one, and nothing is known of policy or levels.
	if s := x.Spec; s != nil {
		out.Known, out.MinCount, out.Topology, out.Priority, out.WholeDisruption = true, s.MinCount, s.Topology, s.Priority, s.WholeDisruption
		out.Required, out.Preferred = s.Required, s.Preferred
		if out.Policy = "Basic"; s.Gang {
			out.Policy = "Gang"
		}
	}
	if c := x.Condition; c != nil {
		condition := v1alpha1.PodGroupCondition(*c)
		out.Condition = &condition
	}
	// Either room is kept, or it is said why none was found the last time; neither while the group doesn't wait for long.
	out.RoomMissing = x.RoomMissing
	if r := x.Room; r != nil {
		out.Room = &v1alpha1.PodGroupRoom{Members: r.Members, Nodes: r.Nodes, AllNodes: r.AllNodes, Since: r.Since, Until: timeOf(r.Until), Ends: r.Ends}
	}
	// The core has cut both lists already: 10 nodes and 5 reasons.
	for _, n := range x.Nodes {
		out.Nodes = append(out.Nodes, v1alpha1.MemberNode(n))
	}
	for _, w := range x.Why {
		out.Why = append(out.Why, v1alpha1.MemberReason(w))
	}
}
