package engine

import (
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// What dry runs of preemption have found, kept per class and node.
//
// A dry run of a node is dear (it filters the node once for each pod of lower priority),
// and a class that waits asks again at each attempt. So outcomes are kept until
// something may have changed them: a change that touched the node; for a class with a
// group rule that filters, any change but a nomination, which counts on its own node
// only. A change of a pod group, or of a member of one, concerns the nodes of its other members: they
// may leave together. Disruption budgets say which pods go: one that changes how many disruptions it allows
// concerns the nodes with pods that it covers; one that comes, goes, or covers other pods,
// every class and node.
//
// With the outcomes there are reasons why preemption doesn't help, for the message about it.
// Outcomes and reasons are found out when they are asked for, of the nodes of which they were
// forgotten: so a class that asks again pays for what changed.
//
// At most maxDryRunClasses classes keep outcomes; the one that asked longest ago gives
// its place to the next.

// maxDryRunClasses is how many classes of an engine keep dry runs: some 20 bytes for each
// class and node, and what is known of victims.
const maxDryRunClasses = 256

// dryRuns are the outcomes of a class. Like a column's, cells follow the journal: after
// sync those that are known are right.
type dryRuns struct {
	cursor  cluster.Seq           // the changes before it are taken into account
	pending []cluster.NodeIndex   // touched by changes before the cursor that were rolled back since
	groups  []cluster.PodGroupKey // of members that such changes were about
	used    uint64                // Engine.uses when it was used last

	cells   []dryRun            // by node index
	helpful []cluster.NodeIndex // where there are victims, by index
	unknown []cluster.NodeIndex // whose outcome isn't known; some may be gone
	counts  reasonCounts        // why preemption doesn't help, of the nodes of which that is known
	unsaid  []cluster.NodeIndex // those of which it isn't; some may be gone
}

// dryRun is what is known of one node.
type dryRun struct {
	out   *outcome // nil when preemption doesn't help there, or that isn't known
	known bool     // otherwise it is listed in unknown
	said  bool     // otherwise it is listed in unsaid
}

// outcome is who would have to leave a node, and at what cost.
type outcome struct {
	framework.Victims
	cost framework.PreemptionCost
}

// dryRunsOf returns the class's dry runs. Those that are known are up to date.
func (e *Engine) dryRunsOf(c *Class) *dryRuns {
	if c.dry == nil {
		if len(e.dry) >= maxDryRunClasses {
			e.dropOldestDryRuns()
		}
		c.dry = &dryRuns{cursor: e.state.Head(), counts: newReasonCounts()}
		e.dry[c] = true
	}
	e.uses++
	c.dry.used = e.uses
	c.dry.sync(e.state, c.LooksBeyondNode(), e.options.Rebuilt)
	return c.dry
}

// outcomesOf returns the class's dry runs with the outcomes of all nodes.
func (e *Engine) outcomesOf(c *Class) *dryRuns {
	d := e.dryRunsOf(c)
	if len(d.unknown) == 0 {
		return d
	}
	f := e.newNodeFilter(c)
	for _, i := range d.unknown {
		if n := e.state.Node(i); n != nil {
			d.setOutcome(i, e.dryRun(f, n))
		}
		d.cells[i].known = true
	}
	d.unknown = d.unknown[:0]
	return d
}

// setOutcome records who would have to leave a node; nil for nobody.
func (d *dryRuns) setOutcome(i cluster.NodeIndex, out *outcome) {
	if d.cells[i].out = out; out != nil {
		at, _ := slices.BinarySearch(d.helpful, i)
		d.helpful = slices.Insert(d.helpful, at, i)
	}
}

// reasonsOf returns the class's dry runs with the reasons of all nodes. Where preemption helps
// the reason is that it doesn't, as kube-scheduler has it of nodes that need none.
func (e *Engine) reasonsOf(c *Class) *dryRuns {
	d := e.outcomesOf(c)
	if len(d.unsaid) == 0 {
		return d
	}
	f := e.newNodeFilter(c)
	for _, i := range d.unsaid {
		switch n := e.state.Node(i); {
		case n == nil:
			d.counts.clear(i)
		case d.cells[i].out != nil:
			d.counts.set(i, notHelpful, noPlugin)
		default:
			d.counts.set(i, e.whyNoVictims(f, n), noPlugin)
		}
		d.cells[i].said = true
	}
	d.unsaid = d.unsaid[:0]
	return d
}

func (e *Engine) dropOldestDryRuns() {
	var oldest *Class
	for c := range e.dry { // the order doesn't matter: no two were used at once
		if oldest == nil || c.dry.used < oldest.dry.used {
			oldest = c
		}
	}
	delete(e.dry, oldest)
	oldest.dry = nil
}

// sync forgets the outcomes that the changes since the last sync may have changed: all
// of them if beyond is set, which says that the class's rules look beyond the node, or
// if all is.
func (d *dryRuns) sync(s *cluster.State, beyond, all bool) {
	changes, ok := s.Since(d.cursor)
	all = all || !ok || beyond && len(d.pending) > 0
	var budgets []*cluster.Budget
	for i := range changes {
		d.noteGroup(&changes[i])
		switch changes[i].Op {
		case cluster.NominationAdded, cluster.NominationRemoved, cluster.ObjectRenewed, cluster.WorkloadRenewed, cluster.PodReadied, cluster.PodUnreadied:
		case cluster.ObjectSet:
			if b, isBudget := changedBudget(s, changes[i].Object); !isBudget {
				all = all || beyond
			} else if b == nil {
				all = true
			} else if !slices.Contains(budgets, b) {
				budgets = append(budgets, b)
			}
		default:
			all = all || beyond
		}
	}
	if all {
		d.cells, d.helpful, d.unknown, d.unsaid, d.counts = d.cells[:0], d.helpful[:0], d.unknown[:0], d.unsaid[:0], newReasonCounts()
	}
	for i := len(d.cells); i < s.Len(); i++ {
		d.cells = append(d.cells, dryRun{})
		d.unknown, d.unsaid = append(d.unknown, cluster.NodeIndex(i)), append(d.unsaid, cluster.NodeIndex(i))
	}
	d.shrink(s.Len())
	for _, n := range d.pending {
		d.forget(n)
	}
	for i := range changes {
		d.forget(changes[i].Node)
	}
	d.forgetMembers(s)
	d.forgetCovered(s, budgets)
	d.pending, d.cursor = d.pending[:0], s.Head()
}

// shrink drops the cells of nodes that were rolled back: there are n left.
func (d *dryRuns) shrink(n int) {
	if len(d.cells) <= n {
		return
	}
	for i := n; i < len(d.cells); i++ {
		d.forget(cluster.NodeIndex(i))
		d.counts.clear(cluster.NodeIndex(i))
	}
	beyond := func(i cluster.NodeIndex) bool { return int(i) >= n }
	d.unknown, d.unsaid = slices.DeleteFunc(d.unknown, beyond), slices.DeleteFunc(d.unsaid, beyond)
	d.cells = d.cells[:n]
}

// forget drops what is known of a node; of NoNode and nodes that were rolled back nothing is.
func (d *dryRuns) forget(n cluster.NodeIndex) {
	if n == cluster.NoNode || int(n) >= len(d.cells) {
		return
	}
	cell := &d.cells[n]
	if cell.out != nil {
		at, _ := slices.BinarySearch(d.helpful, n)
		d.helpful = slices.Delete(d.helpful, at, at+1)
	}
	if cell.known {
		d.unknown = append(d.unknown, n)
	}
	if cell.said {
		d.unsaid = append(d.unsaid, n)
	}
	*cell = dryRun{}
}

// rolledBack does what column.rolledBack does.
func (d *dryRuns) rolledBack(to cluster.Seq, undone []cluster.Change) {
	if d.cursor <= to {
		return
	}
	for i := range undone[:d.cursor-to] {
		if n := undone[i].Node; n != cluster.NoNode {
			d.pending = append(d.pending, n)
		}
		d.noteGroup(&undone[i])
	}
	d.cursor = to
}

// noteGroup records the pod group that a change is about, or a member of which has come or gone.
func (d *dryRuns) noteGroup(c *cluster.Change) {
	var key cluster.PodGroupKey
	switch {
	case (c.Op == cluster.PodAdded || c.Op == cluster.PodRemoved) && c.Pod.Group != nil:
		key = *c.Pod.Group
	case c.Object != nil:
		var is bool
		if key, is = c.Object.PodGroup(); !is {
			return
		}
	default:
		return
	}
	if !slices.Contains(d.groups, key) {
		d.groups = append(d.groups, key)
	}
}

// forgetMembers drops what is known of nodes with members of the groups that were noted.
func (d *dryRuns) forgetMembers(s *cluster.State) {
	for _, key := range d.groups {
		for _, n := range s.MemberNodes(key) {
			d.forget(n)
		}
	}
	d.groups = d.groups[:0]
}

// changedBudget returns the disruption budget that has changed without covering other pods. It
// returns nil for one that has come or gone, or covers others; then isBudget is true, too.
func changedBudget(s *cluster.State, c *cluster.ObjectChange) (b *cluster.Budget, isBudget bool) {
	then, _ := c.Old.(*policyv1.PodDisruptionBudget)
	now, _ := c.New.(*policyv1.PodDisruptionBudget)
	if then == nil || now == nil {
		return nil, then != nil || now != nil
	}
	if !equality.Semantic.DeepEqual(then.Spec.Selector, now.Spec.Selector) {
		return nil, true
	}
	for _, b := range s.Budgets(now.Namespace) {
		if b.Name == now.Name {
			return b, true
		}
	}
	return nil, true
}

// forgetCovered drops what is known of nodes with pods that one of the budgets covers. Where no
// pod would have to leave, budgets don't matter.
func (d *dryRuns) forgetCovered(s *cluster.State, budgets []*cluster.Budget) {
	if len(budgets) == 0 {
		return
	}
	var unit []*cluster.Pod
	covered := func(p *cluster.Pod) bool {
		unit = AppendUnit(unit[:0], s, p)
		return slices.ContainsFunc(unit, func(p *cluster.Pod) bool {
			return slices.ContainsFunc(budgets, func(b *cluster.Budget) bool { return b.Namespace == p.Object.Namespace && b.Covers(p) })
		})
	}
	for _, i := range slices.Clone(d.helpful) {
		if slices.ContainsFunc(s.Node(i).Pods, covered) {
			d.forget(i)
		}
	}
}
