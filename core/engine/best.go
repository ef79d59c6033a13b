package engine

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Choosing the best node for a class, and placing pods there.
//
// Best only looks. The methods named Place put the pod on the node in the state, where
// every rule sees it from then on; the caller takes it off again if nothing comes of it.
// A choice costs O(groups + exceptional nodes) and the touched nodes since the column's
// last one.

// Choice is a node for a pod, with its total score.
type Choice struct {
	Node  cluster.NodeIndex // NoNode when there is none
	Score int64
	// Writes are objects that placing the pod has changed in the state. They
	// have to be written, and take effect, before the pod is bound.
	Writes []cluster.ObjectChange
}

// Best returns the best node for a pod of the class; ok is false when there is
// none. It doesn't change the state.
func (e *Engine) Best(c *Class) (best Choice, ok bool) {
	if !e.fillView(c) {
		return Choice{Node: cluster.NoNode}, false
	}
	v := &e.view
	key, entry := v.best()
	v.chosen = entry
	return Choice{Node: v.nodeOf(entry), Score: key.score()}, true
}

// fillView fills the engine's view for a class, and reports whether any node takes it. If
// none does, only the entries' nodes are filled in, if that.
func (e *Engine) fillView(c *Class) bool {
	e.refresh(c)
	if c.Rejected != nil {
		return false
	}
	v, col := &e.view, e.syncedColumn(c)
	if e.firstFailing(c, col) != nil {
		return false
	}
	v.gather(e, c, col, false)
	if !v.filter(e, c) {
		return false
	}
	v.score(c)
	return true
}

// Place puts the pod on the best node, if there is one.
func (e *Engine) Place(c *Class, p *cluster.Pod) (Choice, bool) {
	best, ok := e.Best(c)
	if ok {
		best.Writes = e.PlaceOn(p, best.Node)
	}
	return best, ok
}

// PlaceOn puts the pod on a node that somebody has chosen, and has the plugins take
// what it needs there, of what nominated pods leave if that will do. It returns Choice.Writes.
func (e *Engine) PlaceOn(p *cluster.Pod, n cluster.NodeIndex) []cluster.ObjectChange {
	if !e.state.TakesObjects(p) {
		e.state.PlaceAt(p, n)
		return nil
	}
	beside := e.assumedBeside(p, n)
	e.state.PlaceAt(p, n)
	if beside == nil {
		return e.assume(p, n)
	}
	from := e.state.Head()
	for i := range beside {
		e.state.SetObject(beside[i].New)
	}
	return e.changedSince(from)
}

// TakeOff takes a pod off its node in a what-if, and has the plugins give back what it took there:
// then the state is as its replacement would find it. It returns the objects that were changed. A pod
// that is on no node keeps what it has.
func (e *Engine) TakeOff(p *cluster.Pod) []cluster.ObjectChange {
	if !e.state.Remove(p.UID) || !e.state.TakesObjects(p) {
		return nil
	}
	return e.giveBack(p)
}

// assume has the plugins take what the pod needs on its node, and returns the objects
// that they changed.
func (e *Engine) assume(p *cluster.Pod, n cluster.NodeIndex) []cluster.ObjectChange {
	return e.changed(func(a framework.Assumer) { a.Assume(p, e.state.Node(n), e.state) })
}

// giveBack is the inverse of assume.
func (e *Engine) giveBack(p *cluster.Pod) []cluster.ObjectChange {
	return e.changed(func(a framework.Assumer) { a.Release(p, e.state) })
}

// changed calls f with every plugin that takes things for pods, and returns the objects that have changed.
func (e *Engine) changed(f func(framework.Assumer)) []cluster.ObjectChange {
	from := e.state.Head()
	for i := range e.profile.Plugins {
		if a, ok := e.profile.Plugins[i].Plugin.(framework.Assumer); ok {
			f(a)
		}
	}
	return e.changedSince(from)
}

// changedSince returns the objects that have changed since a position.
func (e *Engine) changedSince(from cluster.Seq) []cluster.ObjectChange {
	changes, _ := e.state.Since(from)
	var out []cluster.ObjectChange
	for i := range changes {
		switch changes[i].Op {
		case cluster.ObjectSet, cluster.ObjectRenewed:
			out = append(out, *changes[i].Object)
		}
	}
	return out
}

// PlaceMany places pods of one class in order until one finds no node, and
// returns how many it placed. It calls placed for each with its node. A pod with claims
// is classified again when its turn comes: the one before may have taken them.
func (e *Engine) PlaceMany(c *Class, pods []*cluster.Pod, placed func(*cluster.Pod, Choice)) int {
	for i, p := range pods {
		c = e.Current(c, p)
		choice, ok := e.Place(c, p)
		if !ok {
			return i
		}
		placed(p, choice)
	}
	return len(pods)
}
