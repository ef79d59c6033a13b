package engine

import (
	"cmp"
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Where preemption helps a class: a dry run of each node without its pods of lower
// priority (kube-scheduler's SelectVictimsOnNode). All nodes are candidates; none is
// sampled. Nothing here changes the state: dry runs are what-ifs, and rolled back.
//
// Who may preempt, whom first and at what cost is the profile's Preempter's to say.

// Candidate is a node that would take a class's pod if the victims left it.
type Candidate struct {
	Node cluster.NodeIndex
	framework.Victims
}

// Preempt returns the candidate of the lowest cost for a pod of the class; ok is false
// when preemption helps on no node. Equal costs go by rank.
func (e *Engine) Preempt(c *Class) (best Candidate, ok bool) {
	best.Node = cluster.NoNode
	var cost *framework.PreemptionCost
	var rank uint64
	e.candidates(c, func(n *cluster.Node, out *outcome) {
		order := -1
		if cost != nil {
			order = out.cost.Compare(cost)
		}
		if order > 0 {
			return
		}
		if k := c.rank(n); order < 0 || k > rank {
			best, cost, rank = Candidate{n.Index, out.Victims}, &out.cost, k
		}
	})
	return best, best.Node != cluster.NoNode
}

// Cheapest returns the candidate of the lowest cost of a list, which extenders have
// agreed to; ok is false when the list is empty. Equal costs go by rank.
func (e *Engine) Cheapest(c *Class, list []Candidate) (best Candidate, ok bool) {
	var cost framework.PreemptionCost
	for k := range list {
		x := e.profile.Preempter.Cost(&list[k].Victims)
		order := x.Compare(&cost)
		if !ok || order < 0 || order == 0 && c.rank(e.state.Node(list[k].Node)) > c.rank(e.state.Node(best.Node)) {
			best, cost, ok = list[k], x, true
		}
	}
	return best, ok
}

// PreemptOn returns what Candidates has of one node, found out anew in one dry run; ok is false when preemption doesn't
// help there.
func (e *Engine) PreemptOn(c *Class, i cluster.NodeIndex) (x Candidate, ok bool) {
	e.refresh(c)
	n := e.state.Node(i)
	if n == nil || c.Rejected != nil || !e.preempts(c) {
		return x, false
	}
	out := e.dryRun(e.newNodeFilter(c), n)
	if out == nil {
		return x, false
	}
	return Candidate{i, out.Victims}, true
}

// CheapestFirst orders candidates by their cost, the lowest first. Equal costs go by rank.
func (e *Engine) CheapestFirst(c *Class, list []Candidate) {
	type priced struct {
		Candidate
		cost framework.PreemptionCost
		rank uint64
	}
	all := make([]priced, len(list))
	for k := range list {
		all[k] = priced{list[k], e.profile.Preempter.Cost(&list[k].Victims), c.rank(e.state.Node(list[k].Node))}
	}
	slices.SortStableFunc(all, func(a, b priced) int {
		return cmp.Or(a.cost.Compare(&b.cost), cmp.Compare(b.rank, a.rank))
	})
	for k := range all {
		list[k] = all[k].Candidate
	}
}

// Candidates returns all nodes where preemption helps, by index.
func (e *Engine) Candidates(c *Class) []Candidate {
	var out []Candidate
	e.candidates(c, func(n *cluster.Node, x *outcome) { out = append(out, Candidate{n.Index, x.Victims}) })
	return out
}

// preempts reports whether the class may preempt, and there is a pod of lower priority
// anywhere.
func (e *Engine) preempts(c *Class) bool {
	return e.profile.Preempter != nil && e.profile.Preempter.Eligible(c.pod) == nil && e.state.HasLowerPriority(c.pod.Priority)
}

// candidates calls found for each node where preemption helps, by index.
func (e *Engine) candidates(c *Class, found func(*cluster.Node, *outcome)) {
	e.refresh(c)
	if c.Rejected != nil || !e.preempts(c) {
		return
	}
	if c.ByName() {
		f := e.newNodeFilter(c)
		for _, n := range e.nodesOf(c) {
			if out := e.dryRun(f, n); out != nil {
				found(n, out)
			}
		}
		return
	}
	d := e.outcomesOf(c)
	for _, i := range d.helpful {
		found(e.state.Node(i), d.cells[i].out)
	}
}

// dryRun returns which pods of lower priority would have to leave the node for the class
// to fit: all of them leave, and as many as possible come back. Members of a pod group whose
// disruptionMode is all leave and come back together, wherever they are. It returns nil when
// preemption doesn't help: the class fits, no pod that could leave is in its way, or it
// doesn't fit even without all of them.
func (e *Engine) dryRun(f *nodeFilter, n *cluster.Node) *outcome {
	if !slices.ContainsFunc(n.Pods, f.mayPreempt) || f.code(n) != framework.Reject {
		return nil
	}
	mark, changed := e.state.Mark(), e.concernFrom()
	defer e.state.Rollback(mark)
	u, on := e.removeLower(f, n)
	if len(u.list) == 0 || f.now(e, &changed).code(n) != framework.OK {
		return nil
	}
	out := &outcome{}
	e.profile.Preempter.Order(u.list, e.state)
	for i := range u.list {
		x := &u.list[i]
		u.putBack(x, on)
		if f.now(e, &changed).code(n) == framework.OK {
			continue // it may stay
		}
		u.remove(x, on)
		out.Pods = append(out.Pods, x.Pods...)
		out.Violations += x.Violations
	}
	if out.Pods == nil {
		return nil // each may stay by itself; a rule isn't monotone
	}
	out.cost = e.profile.Preempter.Cost(&out.Victims)
	return out
}

// removeLower takes the pods that could leave for the class off a node, and returns them. Those that
// would leave other nodes with them are taken off too if the class's rules look there; on is the node
// that was left, NoNode when it is all of them.
func (e *Engine) removeLower(f *nodeFilter, n *cluster.Node) (u *units, on cluster.NodeIndex) {
	u = &e.units
	u.begin(e, f.class.pod.Priority)
	u.addNode(n)
	if on = n.Index; f.class.LooksBeyondNode() {
		on = cluster.NoNode
	}
	for i := range u.list {
		u.remove(&u.list[i], on)
	}
	return u, on
}

// mayPreempt reports whether a pod has a lower priority than the class.
func (f *nodeFilter) mayPreempt(p *cluster.Pod) bool { return p.Priority < f.class.pod.Priority }

// As kube-scheduler words them.
var (
	notHelpful = &framework.Reason{Messages: []string{"Preemption is not helpful for scheduling"}}
	noVictims  = &framework.Reason{Messages: []string{"No preemption victims found for incoming pod"}}
)

// whyNoVictims returns why preemption doesn't help on a node where dryRun found that it
// doesn't.
func (e *Engine) whyNoVictims(f *nodeFilter, n *cluster.Node) *framework.Reason {
	if f.code(n) != framework.Reject {
		return notHelpful // nothing that could be taken away is in its way
	}
	mark, changed := e.state.Mark(), e.concernFrom()
	defer e.state.Rollback(mark)
	if u, _ := e.removeLower(f, n); len(u.list) == 0 {
		return noVictims
	}
	if why, _ := f.now(e, &changed).reason(n, 0); why != nil {
		return why
	}
	return notHelpful
}

// FitsOn reports whether a node takes a pod of the class now. The pods nominated to it are
// looked at last: that costs the most.
func (e *Engine) FitsOn(c *Class, n *cluster.Node) bool { return e.FitsBeside(c, n, nil) }

// FitsBeside is FitsOn with a look only at those nominated pods that counts is true of; nil is
// true of all.
func (e *Engine) FitsBeside(c *Class, n *cluster.Node, counts func(*cluster.Pod) bool) bool {
	e.refresh(c)
	if c.Rejected != nil {
		return false
	}
	f := &e.fitsFilter
	f.begin(e, c)
	f.counts = counts
	return f.reject(n).code == framework.OK && f.codeWithNominatedPods(n) == framework.OK
}

// FitsBare is FitsOn without a look at the pods nominated to the node.
func (e *Engine) FitsBare(c *Class, n *cluster.Node) bool {
	e.refresh(c)
	return c.Rejected == nil && e.newNodeFilter(c).reject(n).code == framework.OK
}

// LocallyFits reports whether the rules that look at a node alone let a pod of the class on
// it, as the column has it: where they don't, FitsOn is false. It costs O(1) a node once
// the column has seen the changes.
func (e *Engine) LocallyFits(c *Class, n cluster.NodeIndex) bool {
	e.refresh(c)
	if c.Rejected != nil {
		return false
	}
	return e.localColumn(c).keyOf(n) != 0
}

// CodeOn returns the rules' code for one node; Final when the class is rejected
// everywhere.
func (e *Engine) CodeOn(c *Class, n *cluster.Node) framework.Code {
	e.refresh(c)
	if c.Rejected != nil {
		return framework.Final
	}
	return e.newNodeFilter(c).code(n)
}
