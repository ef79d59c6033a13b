package engine

import (
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Candidate is a node that would take a class's pod if others left it.
type Candidate struct {
	Node cluster.NodeIndex
	framework.Victims
}

// dryRuns keep, for one class, what taking away pods of lower priority would do
// to each node. A node is looked at again when it was touched; where rules look
// beyond the node, all are when anything happened.
type dryRuns struct {
	cursor  cluster.Seq
	pending []cluster.NodeIndex // touched by changes that were rolled back
	cells   []dryRun
	used    uint64 // when it was last asked, in questions
}

// dryRun is the outcome on one node.
type dryRun struct {
	known   bool
	victims *framework.Victims // nil when preemption doesn't help there
	cost    framework.PreemptionCost
}

// mostDryRuns is how many classes keep dry runs.
const mostDryRuns = 64

// rolledBack is as a column's.
func (d *dryRuns) rolledBack(to cluster.Seq, undone []cluster.Change) {
	if d.cursor <= to {
		return
	}
	for i := range undone[:d.cursor-to] {
		if n := undone[i].Node; n != cluster.NoNode {
			d.pending = append(d.pending, n)
		}
	}
	d.cursor = to
}

// sync forgets what may have changed.
func (d *dryRuns) sync(s *cluster.State, narrow, rebuilt bool) {
	changes, ok := s.Since(d.cursor)
	all := !ok || rebuilt
	for i := range changes {
		switch changes[i].Op {
		case cluster.NominationAdded, cluster.NominationRemoved:
		case cluster.ObjectSet:
			all = all || !narrow || isBudget(changes[i].Object)
		default:
			all = all || !narrow
		}
	}
	if all || !narrow && len(d.pending) > 0 {
		clear(d.cells)
	}
	for len(d.cells) < s.Len() {
		d.cells = append(d.cells, dryRun{})
	}
	forget := func(n cluster.NodeIndex) {
		if n != cluster.NoNode && int(n) < len(d.cells) {
			d.cells[n] = dryRun{}
		}
	}
	for _, n := range d.pending {
		forget(n)
	}
	for i := range changes {
		forget(changes[i].Node)
	}
	d.pending, d.cursor = d.pending[:0], s.Head()
}

func isBudget(c *cluster.ObjectChange) bool {
	o := c.New
	if o == nil {
		o = c.Old
	}
	return cluster.KindOf(o) == cluster.BudgetKind
}

// runs returns the class's dry runs, up to date but for nodes not looked at.
func (e *Engine) runs(c *Class) *dryRuns {
	narrow := !c.LooksBeyondNode()
	if c.dry == nil {
		if len(e.dry) >= mostDryRuns {
			var oldest *Class
			for k := range e.dry { // the order doesn't matter: questions are numbered
				if oldest == nil || k.dry.used < oldest.dry.used {
					oldest = k
				}
			}
			delete(e.dry, oldest)
			oldest.dry = nil
		}
		c.dry = &dryRuns{cursor: e.state.Head()}
		e.dry[c] = true
	}
	e.questions++
	c.dry.used = e.questions
	c.dry.sync(e.state, narrow, e.how.Rebuilt)
	return c.dry
}

// Preempt returns the node where the least has to go for a pod of the class to
// fit, and what; ok is false when there is none. It leaves the state as it is.
func (e *Engine) Preempt(c *Class) (best Candidate, ok bool) {
	best.Node = cluster.NoNode
	var cost *framework.PreemptionCost
	var rank uint64
	e.candidates(c, func(n *cluster.Node, r *dryRun) {
		x := -1
		if cost != nil {
			x = r.cost.Compare(cost)
		}
		if x > 0 {
			return
		}
		if k := c.shared.rank(n); x < 0 || k > rank {
			best, cost, rank = Candidate{n.Index, *r.victims}, &r.cost, k
		}
	})
	return best, best.Node != cluster.NoNode
}

// Cheapest returns the candidate where the least has to go.
func (e *Engine) Cheapest(c *Class, list []Candidate) (best Candidate, ok bool) {
	var cost framework.PreemptionCost
	for k := range list {
		x := e.profile.Preempter.Cost(&list[k].Victims)
		order := x.Compare(&cost)
		if !ok || order < 0 || order == 0 && c.shared.rank(e.state.Node(list[k].Node)) > c.shared.rank(e.state.Node(best.Node)) {
			best, cost, ok = list[k], x, true
		}
	}
	return best, ok
}

// Candidates returns all nodes where preemption helps, by index.
func (e *Engine) Candidates(c *Class) []Candidate {
	var out []Candidate
	e.candidates(c, func(n *cluster.Node, r *dryRun) { out = append(out, Candidate{n.Index, *r.victims}) })
	return out
}

// preempts tells whether the class may preempt, and there is anybody to preempt.
func (e *Engine) preempts(c *Class) bool {
	return e.profile.Preempter != nil && e.profile.Preempter.Eligible(c.pod) == nil && e.state.HasBelow(c.pod.Priority)
}

func (e *Engine) candidates(c *Class, found func(*cluster.Node, *dryRun)) {
	e.refresh(c)
	if c.Rejected != nil || !e.preempts(c) {
		return
	}
	d := e.runs(c)
	f := e.newNodeFilter(c)
	e.state.Nodes(func(n *cluster.Node) {
		r := &d.cells[n.Index]
		if !r.known {
			*r = dryRun{known: true}
			if r.victims, _ = e.dryRun(f, n, false); r.victims != nil {
				r.cost = e.profile.Preempter.Cost(r.victims)
			}
		}
		if r.victims != nil {
			found(n, r)
		}
	})
	d.cursor = e.state.Head()
}

// dryRun finds out which pods of lower priority would have to leave the node:
// all of them do, and as many as possible come back. Nil victims say that it
// doesn't help, why is then told if wanted.
func (e *Engine) dryRun(f *nodeFilter, n *cluster.Node, explain bool) (*framework.Victims, *framework.Reason) {
	below := func(p *cluster.Pod) bool { return p.Priority < f.class.pod.Priority }
	if !explain && !slices.ContainsFunc(n.Pods, below) {
		return nil, nil
	}
	if code := f.code(n); code != framework.Reject {
		return nil, notHelpful // nothing that could be taken away is in its way
	}
	var lower []*cluster.Pod
	for _, p := range n.Pods {
		if below(p) {
			lower = append(lower, p)
		}
	}
	if lower == nil {
		return nil, noVictims
	}
	mark := e.state.Mark()
	defer e.state.Rollback(mark)
	for _, p := range lower {
		e.state.Remove(p.UID)
	}
	if explain {
		if why, _ := f.reason(n); why != nil {
			return nil, why
		}
	} else if f.code(n) != framework.OK {
		return nil, nil
	}
	out := &framework.Victims{}
	violating := e.profile.Preempter.Order(lower, e.state)
	for i, p := range lower {
		e.state.PlaceAt(p, n.Index)
		if f.code(n) == framework.OK {
			continue
		}
		e.state.Remove(p.UID)
		out.Pods = append(out.Pods, p)
		if i < violating {
			out.Violations++
		}
	}
	if out.Pods == nil {
		return nil, notHelpful
	}
	return out, nil
}

// As kube-scheduler words them.
var (
	notHelpful = &framework.Reason{Messages: []string{"Preemption is not helpful for scheduling"}}
	noVictims  = &framework.Reason{Messages: []string{"No preemption victims found for incoming pod"}}
)

// FitsOn tells whether a node takes a pod of the class now.
func (e *Engine) FitsOn(c *Class, n *cluster.Node) bool { return e.CodeOn(c, n) == framework.OK }

// CodeOn returns the rules' code for one node; Final when the class is rejected
// everywhere.
func (e *Engine) CodeOn(c *Class, n *cluster.Node) framework.Code {
	e.refresh(c)
	if c.Rejected != nil {
		return framework.Final
	}
	return e.newNodeFilter(c).code(n)
}
