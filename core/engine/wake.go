package engine

// This file answers whether changes let a waiting class in. The queue puts the
// changes of a Step to each waiting class once, however many pods wait. A question
// costs O(touched nodes × rules); all nodes are evaluated only when a group rule
// hints that it may now let go of nodes that the changes didn't touch.
//
// It must hold that no wake-up is missed: when a class fits after the changes and
// didn't before, the answer is Fits; when preemption was ruled out and now helps, the
// answer isn't NoHelp. An error that ends attempts counts as Fits: only an attempt ends the waiting, and
// what the class would do without the error is found out then.

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Help is what changes do for a class that waits.
type Help uint8

// The kinds of help.
const (
	NoHelp   Help = iota
	Preempts      // a pod of the class would fit if others left, which was not so before
	Fits          // a pod of the class fits
)

// MayHelp returns what the changes do for a class that waits for the reasons in d.
// They are all changes since d was made or last returned from here. The diagnosis
// that it returns knows in addition which rules were found to reject nodes; it is
// d itself when there is nothing new to know. Who keeps d for the next question has
// to keep what is returned instead.
//
// A class that is rejected on all nodes at once, or that something beyond the rules
// has rejected, is let try: nothing cheaper can tell.
func (e *Engine) MayHelp(c *Class, d *Diagnosis, changes []cluster.Change) (Help, *Diagnosis) {
	if d.everywhere != nil {
		if d.everywhere.OfPod {
			return NoHelp, d
		}
		return Fits, d
	}
	if d.outside || e.options.Unhinted {
		if len(changes) > 0 {
			return Fits, d
		}
		return NoHelp, d
	}
	e.refresh(c)
	if c.Rejected != nil {
		return NoHelp, d
	}
	preempts := d.preemption.RuledOut && e.preempts(c)
	if c.hints(d.hinting, changes) {
		return e.helpAnywhere(c, d, preempts)
	}
	return e.helpOnTouched(c, d, changes, preempts)
}

// MayHelpElsewhere reports whether changes may have a node take a pod of the class that it didn't
// take before, though they haven't touched the node: a group rule says so, or they are of objects
// that any rule may read.
func (e *Engine) MayHelpElsewhere(c *Class, changes []cluster.Change) bool {
	if c.termsForgotten != e.state.TermsForgotten() {
		return true // the rules that are to be asked may be other ones
	}
	e.refresh(c)
	for i := range changes {
		switch changes[i].Op {
		case cluster.ObjectSet, cluster.WorkloadSet, cluster.GroupSet, cluster.HeadroomSet:
			return true
		}
	}
	return c.hints(c.groupPlugins(), changes)
}

// helpAnywhere evaluates all nodes. preempts says that preemption is to be looked
// into, too.
func (e *Engine) helpAnywhere(c *Class, d *Diagnosis, preempts bool) (Help, *Diagnosis) {
	if _, ok := e.Best(c); ok || e.firstFailing(c, e.syncedColumn(c)) != nil {
		return Fits, d
	}
	// A node that one rule takes now another may reject, which stood behind it: from
	// here on the hints of all count.
	d = d.withHinting(d.hinting.union(c.groupPlugins()))
	if preempts {
		if _, ok := e.Preempt(c); ok {
			return Preempts, d
		}
	}
	return NoHelp, d
}

// helpOnTouched evaluates the touched nodes.
func (e *Engine) helpOnTouched(c *Class, d *Diagnosis, changes []cluster.Change, preempts bool) (Help, *Diagnosis) {
	touching := changes
	if c.ByName() {
		touching = e.sinceTouched(c, changes)
	}
	help, hinting := NoHelp, d.hinting
	var col *column
	if len(touching) > 0 {
		col = e.localColumn(c)
	}
	var f *nodeFilter
	e.asked.next(e.state.Len())
	for i := range touching {
		n := e.state.Node(touching[i].Node) // nil when the change touched none, or it is gone again
		if n == nil || !e.asked.set(n.Index) {
			continue
		}
		fails := col.evaluator().cells[n.Index].failing
		if !col.cells[n.Index].ok && !fails && !preempts {
			continue
		}
		if f == nil {
			f = &e.touchedFilter
			f.begin(e, c)
		}
		if fails && f.code(n) == framework.Error {
			return Fits, d
		}
		if col.cells[n.Index].ok {
			r, _ := f.firstRejection(n, objectRules|podRules)
			if r.code == framework.OK {
				return Fits, d
			}
			if r.group != nil {
				// The rule may have stood behind another so far, and now rejects
				// the node alone: from here on its hints count.
				hinting = hinting.with(r.group.plugin)
			}
		}
		if preempts && help == NoHelp && e.dryRun(f, n) != nil {
			help = Preempts
		}
	}
	// A rule that stands behind others now may be what forbids preemption.
	if preempts && help == NoHelp && c.LooksBeyondNode() && c.hints(c.groupPlugins(), changes) {
		if _, ok := e.Preempt(c); ok {
			help = Preempts
		}
	}
	return help, d.withHinting(hinting)
}

// groupPlugins returns the plugins that have a group rule for the class.
func (c *Class) groupPlugins() (s pluginSet) {
	for k := range c.groupRules {
		s = s.with(c.groupRules[k].plugin)
	}
	return s
}

// hints reports whether a group rule of one of the plugins says that one of the
// changes may have it let go of nodes that the change didn't touch.
func (c *Class) hints(plugins pluginSet, changes []cluster.Change) bool {
	for k := range c.groupRules {
		r := &c.groupRules[k]
		if r.neverFilters || !plugins.has(r.plugin) {
			continue
		}
		h, ok := r.GroupRule.(framework.Hinter)
		for i := range changes {
			if !ok || h.Hint(&changes[i]) {
				return true
			}
		}
	}
	return false
}
