package engine

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// This file answers what decisions about pod groups ask beside the best node for one pod: how many
// members a node could hold at most, where in a topology domain one would be, and whether changes may
// have more of them fit.

// CountableMembers reports whether in which order pods of the class are placed, and where the first
// of them go, has no influence on how many find a node, so that another order can't find more nodes
// for them than the first did.
func (e *Engine) CountableMembers(c *Class) bool {
	return !e.state.TakesObjects(c.pod) && c.Rejected == nil && e.upToNodes(c, func(r framework.GroupRule) bool {
		bound, is := r.(framework.NodeBound)
		_, counts := r.(framework.Counter)
		return counts || is && bound.NodeBound()
	})
}

// HoldsAtMost returns a bound on how many pods of a class a node takes besides what is there, most at
// most: what is elsewhere may keep them away. It evaluates the local rules once.
func (e *Engine) HoldsAtMost(c *Class, n *cluster.Node, most int) int {
	if c.Rejected != nil || c.narrowed.leavesOut(n.NodeInfo) {
		return 0
	}
	for i := range c.localRules {
		x, counts := c.localRules[i].LocalRule.(framework.Counter)
		if counts {
			most = min(most, x.Count(n))
		} else if code, _ := c.localRules[i].EvalNode(n); code != framework.OK {
			return 0
		}
		if most <= 0 {
			return 0
		}
	}
	return most
}

// ExcludedByObject reports whether a node's object alone keeps pods of the class away, as a cordon or a taint
// does: whoever leaves it, none of them can be there. Rules of plugins that yield (framework.Yielder) aren't asked,
// since those who leave give back what they have taken.
func (e *Engine) ExcludedByObject(c *Class, n *cluster.Node) bool {
	e.refresh(c)
	if c.narrowed.leavesOut(n.NodeInfo) {
		return true
	}
	for i := range c.localRules {
		if r := &c.localRules[i]; r.reads == framework.ReadsObject && !e.yielder(r.plugin) {
			if code, _ := r.EvalNode(n); code != framework.OK {
				return true
			}
		}
	}
	return false
}

// yielder reports whether a plugin of the profile has pods take what they give back when they leave.
func (e *Engine) yielder(plugin int) bool {
	_, ok := e.profile.Plugins[plugin].Plugin.(framework.Yielder)
	return ok
}

// PlaceOnBestOf puts the pod on the best of some nodes, which are given by index; ok is false when
// none takes it. Equal scores go by rank, as in Best. It costs O(groups + nodes given).
func (e *Engine) PlaceOnBestOf(c *Class, p *cluster.Pod, nodes []cluster.NodeIndex) (choice Choice, ok bool) {
	best := ranked{node: cluster.NoNode}
	for _, a := range e.AnswersFor(c, nodes) {
		if !a.OK {
			continue
		}
		if x := (ranked{a.Node, a.Score, c.rank(e.state.Node(a.Node))}); x.beats(best) {
			best = x
		}
	}
	if best.node == cluster.NoNode {
		return Choice{Node: cluster.NoNode}, false
	}
	return Choice{Node: best.node, Score: best.score, Writes: e.PlaceOn(p, best.node)}, true
}

// MayHelpMembers reports whether changes may have more pods of the class find nodes beside others
// than before: a node that they touched takes one, other than by a pod that came to it, or a group rule
// says that they may help elsewhere. everywhere says that the class was rejected on all nodes at once.
func (e *Engine) MayHelpMembers(c *Class, everywhere bool, changes []cluster.Change) bool {
	if e.options.Unhinted {
		return len(changes) > 0
	}
	e.refresh(c)
	if c.Rejected != nil {
		return false
	}
	if everywhere || c.hints(c.groupPlugins(), changes) {
		return true
	}
	// What comes to a node, or is nominated there, leaves less room on it.
	freeing := make([]cluster.Change, 0, len(changes))
	for i := range changes {
		if op := changes[i].Op; op != cluster.PodAdded && op != cluster.NominationAdded {
			freeing = append(freeing, changes[i])
		}
	}
	help, _ := e.helpOnTouched(c, &Diagnosis{}, freeing, false)
	return help == Fits
}
