package engine

import (
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// away are the pods that a dry run of preemption has taken off their nodes. Where plugins yield
// (framework.Yielder), pods give back what they have taken, and take the same again when they come back.
// Invariant: what is taken is what those have taken that aren't away; a thing that several share is free
// when all of them are.
type away struct {
	engine *Engine
	givers []giver // the pods that are away now, and have given something back
	former cluster.Former
}

// giver is a pod that has given something back.
type giver struct {
	pod  *cluster.Pod
	gave []cluster.ObjectChange
}

// take takes a pod off its node.
func (a *away) take(p *cluster.Pod) {
	if !a.engine.yields {
		a.engine.state.Remove(p.UID)
		return
	}
	if gave := a.engine.TakeOff(p); len(gave) > 0 {
		a.former.Note(gave)
		a.givers = append(a.givers, giver{p, gave})
	}
}

// putBack puts a pod back on its node. What it has given back is as it was before any pod was taken
// off, and then the others give back again what they share with it.
func (a *away) putBack(p *cluster.Pod, node cluster.NodeIndex) {
	a.engine.state.PlaceAt(p, node)
	at := slices.IndexFunc(a.givers, func(g giver) bool { return g.pod == p })
	if at < 0 {
		return
	}
	gave := a.givers[at].gave
	a.givers = slices.Delete(a.givers, at, at+1)
	for i := range gave {
		a.former.RestoreOne(a.engine.state, &gave[i])
	}
	for _, g := range a.givers {
		if slices.ContainsFunc(g.gave, func(c cluster.ObjectChange) bool {
			return slices.ContainsFunc(gave, func(d cluster.ObjectChange) bool { return c.SameObject(&d) })
		}) {
			a.engine.giveBack(g.pod)
		}
	}
}

// yields reports whether a plugin of the profile has victims give back what they have taken.
func yields(p *framework.Profile) bool {
	return slices.ContainsFunc(p.Plugins, func(w framework.Weighted) bool {
		y, ok := w.Plugin.(framework.Yielder)
		return ok && y.Yields()
	})
}

// Yields reports whether pods of the profile may preempt others for what these have taken.
func (e *Engine) Yields() bool { return e.yields }

// now returns the filter of the class that a pod of the filter's class is of after the changes that a what-if has
// made from a position on: what the pod claims may have lost its devices with victims, or got some with a
// nominated pod. The filter stays when no change concerns a claim that the pod has: it may be gone with its claims.
func (f *nodeFilter) now(e *Engine, from cluster.Seq) *nodeFilter {
	if !f.class.takes || !e.concerned(f.class.pod, from) {
		return f
	}
	c := e.Class(f.class.pod)
	if c == f.class {
		return f
	}
	e.refresh(c)
	return e.newNodeFilter(c)
}

// concerned reports whether a pod may be signed otherwise after the changes of objects from a position on.
func (e *Engine) concerned(p *cluster.Pod, from cluster.Seq) bool {
	changes, _ := e.state.Since(from)
	for i := range changes {
		if changes[i].Op != cluster.ObjectSet {
			continue
		}
		for k := range e.profile.Plugins {
			r, ok := e.profile.Plugins[k].Plugin.(framework.Reclassifier)
			if !ok {
				continue
			}
			if concerns := r.Reclassifies(&changes[i], e.state); concerns != nil && concerns(p) {
				return true
			}
		}
	}
	return false
}
