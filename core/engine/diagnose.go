package engine

// This file answers questions about a class that fits on no node: why not, and why preemption
// doesn't help either, which are asked at each refusal; and people's, in O(nodes × rules): why
// one node doesn't take it, which rule alone is in the way. No answer changes the state:
// what-ifs are rolled back.

import (
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Diagnose says why the class fits on none of the nodes. Each node counts for the
// first rule that rejects it, in the profile's order. Counts of quantities have the smallest
// deficit on any node, the first of equal ones.
func (e *Engine) Diagnose(c *Class) *Diagnosis {
	e.refresh(c)
	d := &Diagnosis{nodes: e.state.Live(), everywhere: c.Rejected}
	if c.Rejected != nil {
		return d
	}
	r := e.rejections(c)
	e.counts = r.counts(e.counts, e.state)
	d.counts, d.hinting = slices.Clone(e.counts), r.hinting
	return d
}

// DiagnoseInVain is Diagnose of a class for which preemption was looked into in vain, too.
func (e *Engine) DiagnoseInVain(c *Class) *Diagnosis {
	d := e.Diagnose(c)
	d.preemption = Preemption{RuledOut: true, Message: e.PreemptionMessage(c)}
	return d
}

// Refreshed returns a class's diagnosis with its messages as the cluster is now. What
// decides about waking the class stays known: whose hints count, since a change may
// have had a rule take a node about which the class is yet to be asked, and whether
// preemption is ruled out. What extenders said stands, too, since only another attempt
// can ask them.
func (e *Engine) Refreshed(c *Class, d *Diagnosis) *Diagnosis {
	if d.outside {
		return d
	}
	again := e.Diagnose
	if d.preemption.RuledOut {
		again = e.DiagnoseInVain
	}
	out := again(c)
	out.hinting = out.hinting.union(d.hinting)
	return out
}

// PreemptionMessage says why preemption doesn't help the class, as kube-scheduler's
// message has it after "preemption: "; "" when pods of the profile don't preempt.
func (e *Engine) PreemptionMessage(c *Class) string {
	x := e.profile.Preempter
	if x == nil || e.state.Live() == 0 {
		return ""
	}
	if why := x.Eligible(c.pod); why != nil {
		return why.Messages[0]
	}
	e.refresh(c)
	d := Diagnosis{nodes: e.state.Live()}
	switch {
	case c.Rejected != nil: // no node takes the class whoever leaves it
		e.counts = countsOf(e.counts, []rejected{{why: notHelpful, nodes: d.nodes}})
	case c.ByName() && e.state.HasLowerPriority(c.pod.Priority):
		e.counts = countsOf(e.counts, e.whyNoVictimsByName(c))
	case e.options.Rebuilt || e.state.HasLowerPriority(c.pod.Priority):
		e.counts = countsOf(e.counts, e.reasonsOf(c).counts.appendTo(nil))
	default:
		e.counts = countsOf(e.counts, e.noVictims(c))
	}
	d.counts = e.counts
	return d.Message()
}

// noVictims returns why preemption doesn't help a class on any node when nobody has a lower
// priority anywhere. The list lies where rejections has its own, and is valid as long.
func (e *Engine) noVictims(c *Class) []rejected {
	inTheWay := 0 // the nodes where something is that could be taken away
	for _, r := range e.rejections(c).list {
		if r.nodes > 0 && !r.why.Final {
			inTheWay += r.nodes
		}
	}
	list := append(e.rejected.list[:0], rejected{why: noVictims, nodes: inTheWay}, rejected{why: notHelpful, nodes: e.state.Live() - inTheWay})
	e.rejected.list = list
	return list
}

// Explain returns why one node is rejected for the class, nil when it isn't.
func (e *Engine) Explain(c *Class, i cluster.NodeIndex) *framework.Reason {
	e.refresh(c)
	if c.Rejected != nil {
		return c.Rejected
	}
	why, _ := e.newNodeFilter(c).reason(e.state.Node(i), 0)
	return why
}

// Detail says what one node lacks, as far as the local rule that rejects it first can tell more than its
// reason does (framework.Detailer); "" for nothing.
func (e *Engine) Detail(c *Class, i cluster.NodeIndex) string {
	e.refresh(c)
	if c.Rejected != nil {
		return ""
	}
	n := e.state.Node(i)
	r, _ := e.newNodeFilter(c).firstRejection(n, 0)
	if d, ok := r.local.(framework.Detailer); ok {
		return d.Detail(n)
	}
	return ""
}

// Relaxed returns on how many nodes a plugin alone rejects the class, by plugin:
// so many would take it if that rule were lifted.
func (e *Engine) Relaxed(c *Class) map[string]int {
	e.refresh(c)
	out := map[string]int{}
	if c.Rejected != nil {
		return out
	}
	f := e.newNodeFilter(c)
	e.state.Nodes(func(n *cluster.Node) {
		if plugin := f.onlyRejecter(n); plugin != noPlugin {
			out[e.profile.Plugins[plugin].Name()]++
		}
	})
	return out
}

// ExplainAlone is Explain for a node that may be in no state, and a class none of whose rules
// looks beyond the node.
func (e *Engine) ExplainAlone(c *Class, n *cluster.Node) *framework.Reason {
	e.refresh(c)
	if c.Rejected != nil {
		return c.Rejected
	}
	if c.narrowed.leavesOut(n.NodeInfo) {
		return c.narrowed.reason()
	}
	for i := range c.localRules {
		r := c.localRules[i].LocalRule
		if code, _ := r.EvalNode(n); code != framework.OK {
			return r.Explain(n)
		}
	}
	return nil
}
