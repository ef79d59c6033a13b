package api

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/explain"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// This file answers overview, and the same for each tick of the stream.
//
// What must hold: look, which runs in the core's goroutine, reads and sorts nothing that could wait; all that depends
// on the viewer is done afterwards, since one look serves all viewers. Attention is derived from the rest: it has no
// memory, so that an entry goes with its cause, and it names nothing that the rest doesn't.

// glance is what one question for the overview brings.
type glance struct {
	explain.Overview
	groups []explain.GroupStatus
	use    []explain.NamedUse // of all nodes: cpu, memory, then by name
	// pending and ours count the pods without a node, and oldest is since when one of ours has waited.
	pending, ours int
	oldest        time.Time
	unpriced      int // nodes
}

// shownRuns is how many runs of decisions an overview has. A burst of a thousand placements is one run, so that what came
// before it stays in sight.
const shownRuns = 20

// overviewKey is the key of the question for the overview, which goes before others (line.go).
const overviewKey = "overview"

// glance asks for the overview.
func (a *API) glance(r *request) (*glance, time.Time, error) {
	// The same key for all viewers: three of them, or sixty streams, ask the core once a tick.
	x, at, err := a.questions.of(r.Context(), overviewKey, func(c *core.Core) (any, error) { return look(c.View()), nil })
	if err != nil {
		return nil, at, err
	}
	return x.(*glance), at, nil
}

// look reads what an overview is made of, in the core's goroutine: the counts that the core keeps, and a walk over nodes and
// node groups.
func look(v *explain.View) *glance {
	g := &glance{Overview: v.Overview()}
	g.use, g.unpriced = v.Utilization()
	// Before the provider has listed its groups their number isn't 0, it is unknown.
	if v.Autoscaler != nil && v.Autoscaler.Groups.Known() {
		g.groups = v.Groups()
	}
	for _, p := range g.Pending {
		// Pods of other schedulers wait, too, but not for Berth, and aren't counted as ours.
		if g.pending += p.Pods; p.State != explain.PendingUnmanaged {
			g.ours += p.Pods
		}
		if !p.Since.IsZero() && (g.oldest.IsZero() || p.Since.Before(g.oldest)) {
			g.oldest = p.Since
		}
	}
	return g
}

// overview answers overview.
func (a *API) overview(r *request) (any, error) {
	g, at, err := a.glance(r)
	if err != nil {
		return nil, err
	}
	return a.overviewOf(r.viewer, g, at), nil
}

// overviewOf returns the overview for a viewer. It reads a glance that others read at the same time, and changes nothing
// in it.
func (a *API) overviewOf(v *viewer, g *glance, at time.Time) *v1alpha1.Overview {
	o := &v1alpha1.Overview{
		At: at, Pods: v1alpha1.PodCounts{Placed: g.Placed, Pending: g.pending, Ours: g.ours, Oldest: g.oldest},
		Pending: pendingReasonsOf(v, g.Pending), Nodes: nodeCounts(g), Utilization: uses(g.use), Activity: []v1alpha1.Run{},
	}
	o.Attention = a.attention(v, g, o.Pending)
	// It may be newer than the rest, which is of a tick ago at most: a client that reads decisions from here on misses none
	// that the overview shows.
	_, o.Seq = a.opt.Ledger.Range()
	for i := range g.Buying {
		b := &g.Buying[i]
		o.Buying = append(o.Buying, v1alpha1.Buying{Group: b.Group, Nodes: b.Nodes, Pods: b.Pods, Price: v1alpha1.Price(b.Price), Next: expectation(b.Next)})
	}
	for _, l := range g.Leaving {
		o.Draining = append(o.Draining, v1alpha1.Draining{Node: l.Node, Group: l.Group, Price: v1alpha1.Price(l.Price), Leaving: leaving(v, &l.Leaving), Pods: l.Pods})
	}
	// A preemption of a pod that may not be named is left out, since its node and victims would point to it.
	for _, p := range g.Preempting {
		if v.pod(p.Pod) != "" {
			victims, hidden := v.pods(p.Victims)
			o.Preempting = append(o.Preempting, v1alpha1.Preempting{Pod: p.Pod, Node: p.Node, Victims: victims, Count: len(victims) + hidden})
		}
	}
	for _, b := range g.BackingOff {
		o.BackingOff = append(o.BackingOff, v1alpha1.BackingOff{Group: b.Group, Backoff: v1alpha1.Backoff(b.Backoff)})
	}
	for _, c := range g.CoolingDown {
		o.CoolingDown = append(o.CoolingDown, v1alpha1.CoolingDown(c))
	}
	// Without an autoscaler nothing is said of money either: prices are those of node groups.
	if s := g.Nodes.ScaleDown; s != nil {
		o.ScaleDown = &v1alpha1.ScaleDown{Status: string(s.Status), Why: s.Why, Planned: timeOf(s.Planned), Reasons: nodesOfReasons(v, s.Reasons)}
		o.Money = moneySum(g)
	}
	// Some groups have prices and others none: sums are too low then, and the page says so.
	if u := g.Unpriced; u != nil {
		unpriced := v1alpha1.Unpriced(*u)
		o.Unpriced = &unpriced
	}
	o.Resizes = pendingResizes(v, g.Resizes)
	for _, run := range runs(a.opt.Ledger, shownRuns) {
		d := decision(v, &run.last, brief)
		o.Activity = append(o.Activity, v1alpha1.Run{Decision: d, More: run.more})
	}
	return o
}

// pendingReasonsOf returns the pods without a node by what they wait for, most pods first: counts are of all namespaces. The
// example is left out where its name may not be shown, and so is the reason (shownCause); lines that differ in nothing else
// become one.
func pendingReasonsOf(v *viewer, in []explain.PendingPods) []v1alpha1.PendingReason {
	out, at := []v1alpha1.PendingReason{}, map[explain.PendingCause]int{}
	for i := range in {
		p := &in[i]
		cause := shownCause(p.PendingCause, v.all || slices.ContainsFunc(p.Namespaces, v.sees))
		k, known := at[cause]
		if !known {
			k, at[cause] = len(out), len(out)
			out = append(out, v1alpha1.PendingReason{State: v1alpha1.PendingState(cause.State), Reason: cause.Reason, Plugin: cause.Plugin})
		}
		line := &out[k]
		line.Pods += p.Pods
		line.Example = cmp.Or(line.Example, v.pod(p.Pod))
		line.Since = earlier(line.Since, p.Since)
	}
	// As the core has them, until lines became one.
	slices.SortStableFunc(out, func(a, b v1alpha1.PendingReason) int { return cmp.Compare(b.Pods, a.Pods) })
	return out
}

// shownCause returns what may be shown of why pods wait; reads says that the viewer may read one of them. Otherwise the reason
// is left out, since it may have the name of a claim, a gate or a pod group in it, and the plugin has to do. The name of a node
// group is shown to everybody.
func shownCause(c explain.PendingCause, reads bool) explain.PendingCause {
	if !reads && c.State != explain.PendingNodeComing {
		c.Reason = ""
	}
	return c
}

// earlier returns the earlier of two times, of which the zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// pendingResizes returns the resizes that are pending, nil for none. A pod that may not be named is left out; the counts
// stay.
func pendingResizes(v *viewer, in *explain.PendingResizes) *v1alpha1.PendingResizes {
	if in == nil {
		return nil
	}
	out := &v1alpha1.PendingResizes{Deferred: in.Deferred, Infeasible: in.Infeasible, Moving: in.Moving, Pods: []v1alpha1.PendingResize{}}
	for _, p := range in.Pods {
		if v.pod(p.Pod) == "" {
			continue
		}
		p.Why = v.text(p.Why)
		out.Pods = append(out.Pods, v1alpha1.PendingResize(p))
	}
	return out
}

// leaving returns how far the removal of a node is. Why it waits may name the pod that it waits for.
func leaving(v *viewer, l *explain.Leaving) v1alpha1.Leaving {
	return v1alpha1.Leaving{Step: l.Step, Why: v.text(l.Why), Next: timeOf(l.Next)}
}

// nodeCounts adds up nodes by what becomes of them. Target is what node groups should have; with nodes outside of all
// groups, ready may exceed it.
func nodeCounts(g *glance) v1alpha1.NodeCounts {
	n := v1alpha1.NodeCounts{Total: g.Nodes.Nodes, Ready: g.Nodes.Ready, NotReady: g.Nodes.NotReady, Unschedulable: g.Nodes.Unschedulable}
	for i := range g.groups {
		n.Target += g.groups[i].Target
	}
	// Nodes that were ordered and haven't registered are in no list of nodes, so Total lacks them.
	for i := range g.Buying {
		n.Launching += g.Buying[i].Nodes
	}
	if s := g.Nodes.ScaleDown; s != nil {
		for _, r := range s.Reasons {
			switch r.State {
			case explain.NodeCandidate:
				n.Removable += r.Nodes
			case explain.NodeLeaving:
				n.Leaving += r.Nodes
			}
		}
	}
	return n
}

// nodesOfReasons returns how many nodes stay, could go or are going for which reason, with what they cost an hour.
func nodesOfReasons(v *viewer, in []explain.NodesOfReason) []v1alpha1.NodesOfReason {
	out := []v1alpha1.NodesOfReason{}
	for _, r := range in {
		out = append(out, v1alpha1.NodesOfReason{State: v1alpha1.NodeState(r.State), Reason: string(r.Reason), Nodes: r.Nodes, Price: v1alpha1.Price(r.Price), Node: r.Node, Pod: v.pod(r.Pod)})
	}
	return out
}

// uses returns requested and allocatable amounts by resource, cpu and memory first: the order of the question, which the
// page and the screens of the command line rely on.
func uses(in []explain.NamedUse) []v1alpha1.ResourceUse {
	out := []v1alpha1.ResourceUse{}
	for _, u := range in {
		out = append(out, use(u.Name, u.Use))
	}
	return out
}

// moneySum returns what all nodes cost, nil when no price is known.
func moneySum(g *glance) *v1alpha1.MoneySum {
	s := g.Nodes.ScaleDown
	m := &v1alpha1.MoneySum{Price: v1alpha1.Price(s.Price), Unpriced: g.unpriced}
	for _, b := range g.Buying {
		m.Launching += v1alpha1.Price(b.Price)
	}
	// No money is shown rather than $0.00, which would read as a free cluster.
	if m.Price == 0 && m.Launching == 0 {
		return nil
	}
	for _, of := range s.Groups {
		m.Removable += v1alpha1.Price(of.Candidates.Price)
		m.Leaving += v1alpha1.Price(of.Leaving.Price)
	}
	return m
}

// longPending is how long rejected pods wait before they need attention.
const longPending = time.Minute

// attention returns what somebody might act on, the most urgent first. Pending is what the viewer is shown of pods that wait.
func (a *API) attention(v *viewer, g *glance, pending []v1alpha1.PendingReason) []v1alpha1.Attention {
	out := []v1alpha1.Attention{}
	// A file is judged by its own time, or everything in it would have waited for ages.
	now := a.clusterTime(a.opt.Now())
	for i := range pending {
		p := &pending[i]
		// Most pods are rejected once while their node is being bought; a minute is what a person would wait, too.
		if p.State == explain.PendingRejected && now.Sub(p.Since) >= longPending {
			message := count(p.Pods, "pod fits", "pods fit") + " on no node"
			if why := cmp.Or(p.Reason, p.Plugin); why != "" {
				message += ": " + why
			}
			out = append(out, v1alpha1.Attention{Severity: v1alpha1.Critical, Kind: "PodsRejected", Count: p.Pods, Pod: p.Example, Since: p.Since, Message: message})
		}
	}
	if a.opt.Prices != nil {
		if failure := a.opt.Prices(); failure != "" {
			out = append(out, v1alpha1.Attention{Severity: v1alpha1.Warning, Kind: "PriceFile", Message: "the price file is not used as it is now, and the prices of before hold: " + failure})
		}
	}
	out = append(out, groupAttention(g)...)
	out = append(out, nodeAttention(v, g)...)
	// Stable: within a severity the causes come in the order above, which doesn't change from tick to tick.
	rank := map[v1alpha1.Severity]int{v1alpha1.Critical: 0, v1alpha1.Warning: 1, v1alpha1.Info: 2}
	slices.SortStableFunc(out, func(a, b v1alpha1.Attention) int { return cmp.Compare(rank[a.Severity], rank[b.Severity]) })
	return out
}

// groupAttention returns what there is about node groups: those that aren't asked for nodes, those whose nodes can't be
// described, and prices that are missing. Groups at their maximum aren't listed; the pods that this leaves waiting are.
func groupAttention(g *glance) (out []v1alpha1.Attention) {
	for _, b := range g.BackingOff {
		out = append(out, v1alpha1.Attention{Severity: v1alpha1.Warning, Kind: "GroupBackingOff", Group: b.Group, Until: b.Until,
			Message: fmt.Sprintf("node group %s is not asked for nodes for now: %s", b.Group, b.Reason)})
	}
	for i := range g.groups {
		if s := &g.groups[i]; s.TemplateError != "" {
			out = append(out, v1alpha1.Attention{Severity: v1alpha1.Warning, Kind: "TemplateError", Group: s.ID,
				Message: fmt.Sprintf("the provider can't say what new nodes of %s look like: %s", s.ID, s.TemplateError)})
		}
	}
	if u := g.Unpriced; u != nil {
		out = append(out, v1alpha1.Attention{Severity: v1alpha1.Warning, Kind: "Unpriced", Count: u.Without,
			Message: fmt.Sprintf("%d of %d node groups have no price", u.Without, u.Of)})
	}
	return out
}

// nodeAttention returns what there is about nodes: those that aren't ready, scale-down that is held as a whole, and nodes
// that stay for a pod alone. Without an autoscaler only the first can be said.
func nodeAttention(v *viewer, g *glance) (out []v1alpha1.Attention) {
	if n := g.Nodes.NotReady; n > 0 {
		out = append(out, v1alpha1.Attention{Severity: v1alpha1.Warning, Kind: "NodesNotReady", Count: n, Message: count(n, "node is", "nodes are") + " not ready"})
	}
	s := g.Nodes.ScaleDown
	if s == nil {
		return out
	}
	if s.Status == explain.ScaleDownHeld {
		out = append(out, v1alpha1.Attention{Severity: v1alpha1.Warning, Kind: "ScaleDownHeld", Message: "no node is removed for now: " + s.Why})
	}
	for _, r := range s.Reasons {
		if r.State == explain.NodeStays && r.Reason == autoscaler.KeptBlockedByPod {
			out = append(out, v1alpha1.Attention{Severity: v1alpha1.Info, Kind: "NodesBlocked", Count: r.Nodes, Node: r.Node, Pod: v.pod(r.Pod), Price: v1alpha1.Price(r.Price),
				Message: count(r.Nodes, "node", "nodes") + " can't be removed because of pods that may not be evicted"})
		}
	}
	return out
}

// count writes a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
