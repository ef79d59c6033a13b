package engine

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// What dry runs of preemption have found, kept per class and node.
//
// A dry run of a node is dear (it filters the node once for each pod of lower priority),
// and a class that waits asks again at each attempt. So outcomes are kept until
// something may have changed them: a change that touched the node; for a class with a
// group rule that filters, any change but a nomination, which counts on its own node
// only; for every class a disruption budget, since budgets say which pods go.
//
// At most maxDryRunClasses classes keep outcomes; the one that asked longest ago gives
// its place to the next.

// maxDryRunClasses is how many classes of an engine keep dry runs: some 64 bytes for each
// class and node.
const maxDryRunClasses = 64

// dryRuns are the outcomes of a class. Like a column's, cells follow the journal: after
// sync those that are known are right.
type dryRuns struct {
	cursor  cluster.Seq         // the changes before it are taken into account
	pending []cluster.NodeIndex // touched by changes before the cursor that were rolled back since
	cells   []dryRun            // by node index
	used    uint64              // Engine.dryUses when it was used last
}

// dryRun is the outcome on one node.
type dryRun struct {
	known   bool
	victims *framework.Victims // nil when preemption doesn't help there
	cost    framework.PreemptionCost
}

// dryRunsOf returns the class's dry runs. Those that are known are up to date.
func (e *Engine) dryRunsOf(c *Class) *dryRuns {
	if c.dry == nil {
		if len(e.dry) >= maxDryRunClasses {
			e.dropOldestDryRuns()
		}
		c.dry = &dryRuns{cursor: e.state.Head()}
		e.dry[c] = true
	}
	e.dryUses++
	c.dry.used = e.dryUses
	c.dry.sync(e.state, c.LooksBeyondNode(), e.options.Rebuilt)
	return c.dry
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
	for i := range changes {
		switch changes[i].Op {
		case cluster.NominationAdded, cluster.NominationRemoved, cluster.ObjectRenewed, cluster.WorkloadRenewed, cluster.PodReadied, cluster.PodUnreadied:
		case cluster.ObjectSet:
			all = all || beyond || isBudget(changes[i].Object)
		default:
			all = all || beyond
		}
	}
	if all {
		clear(d.cells)
	}
	for len(d.cells) < s.Len() {
		d.cells = append(d.cells, dryRun{})
	}
	for _, n := range d.pending {
		d.forget(n)
	}
	for i := range changes {
		d.forget(changes[i].Node)
	}
	d.pending, d.cursor = d.pending[:0], s.Head()
}

// forget drops the outcome on a node; NoNode and nodes that were rolled back have none.
func (d *dryRuns) forget(n cluster.NodeIndex) {
	if n != cluster.NoNode && int(n) < len(d.cells) {
		d.cells[n] = dryRun{}
	}
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
	}
	d.cursor = to
}

func isBudget(c *cluster.ObjectChange) bool {
	o := c.New
	if o == nil {
		o = c.Old
	}
	return cluster.KindOf(o) == cluster.BudgetKind
}
