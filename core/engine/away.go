package engine

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// away are the pods that a dry run of preemption has taken off their nodes. Where plugins yield
// (framework.Yielder), pods give back what they have taken, and take the same again when they come back.
// It must hold that
//
//   - what is taken is what those have taken that aren't away; a thing that several share is free
//     when all of them are;
//   - taking a pod off or putting it back costs what the pod has to give, and what the pods have that are away
//     and share it, however many others are away.
type away struct {
	engine *Engine
	gave   map[*cluster.Pod][]cluster.ObjectChange // by the pods that are away now and have given something back
	former cluster.Former
	givers [][]*cluster.Pod // those that have given back an object, by its position in former
}

// take takes a pod off its node.
func (a *away) take(p *cluster.Pod) {
	if !a.engine.yields {
		a.engine.state.Remove(p.UID)
		return
	}
	gave := a.engine.TakeOff(p)
	if len(gave) == 0 {
		return
	}
	a.former.Note(gave)
	if a.gave == nil {
		a.gave = map[*cluster.Pod][]cluster.ObjectChange{}
	}
	a.gave[p] = gave
	for i := range gave {
		at := a.former.At(&gave[i])
		for len(a.givers) <= at {
			a.givers = append(a.givers, nil)
		}
		a.givers[at] = append(a.givers[at], p)
	}
}

// putBack puts a pod back on its node. What it has given back is as it was before any pod was taken
// off, and then the others give back again what they share with it.
func (a *away) putBack(p *cluster.Pod, node cluster.NodeIndex) {
	a.engine.state.PlaceAt(p, node)
	gave := a.gave[p]
	delete(a.gave, p)
	var sharing []*cluster.Pod
	for i := range gave {
		a.former.RestoreOne(a.engine.state, &gave[i])
		at := a.former.At(&gave[i])
		a.givers[at] = slices.DeleteFunc(a.givers[at], func(x *cluster.Pod) bool { return x == p })
		for _, x := range a.givers[at] {
			if !slices.Contains(sharing, x) {
				sharing = append(sharing, x)
			}
		}
	}
	for _, x := range sharing {
		a.engine.giveBack(x)
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

// concern follows the changes of objects in a what-if, each of which it looks at once: whether one of them may have
// the pod that the what-if is about signed otherwise.
type concern struct {
	from cluster.Seq // the changes before it have been looked at
	met  bool        // one of those may have
}

// concernFrom returns a concern about the changes from now on.
func (e *Engine) concernFrom() concern { return concern{from: e.state.Head()} }

// now returns the filter of the class that a pod of the filter's class is of after the changes that a what-if has
// made: what the pod claims may have lost its devices with victims, or got some with a nominated pod. The filter
// stays when no change concerns a claim that the pod has: it may be gone with its claims.
func (f *nodeFilter) now(e *Engine, x *concern) *nodeFilter {
	if !f.class.takes || !x.meets(e, f.class.pod) {
		return f
	}
	c := e.Class(f.class.pod)
	e.refresh(c)
	return e.newNodeFilter(c)
}

// meets reports whether a pod, which is the same each time, may be signed otherwise after the changes so far.
func (x *concern) meets(e *Engine, p *cluster.Pod) bool {
	if x.met {
		return true
	}
	changes, _ := e.state.Since(x.from)
	x.from = e.state.Head()
	for i := range changes {
		if changes[i].Op == cluster.ObjectSet && e.concerns(&changes[i], p) {
			x.met = true
			break
		}
	}
	return x.met
}

// concerns reports whether another pod of the class of a pod may be signed otherwise after a change. What was made for
// a pod that is placed, in a what-if that places those that are nominated, is its own: the others have theirs.
func (e *Engine) concerns(change *cluster.Change, p *cluster.Pod) bool {
	if _, placed := e.state.Placed(p.UID); placed && metav1.IsControlledBy(change.Object.One(), p.Object) {
		return false
	}
	for k := range e.profile.Plugins {
		if r, ok := e.profile.Plugins[k].Plugin.(framework.Reclassifier); ok {
			if concerns := r.Reclassifies(change, e.state); concerns != nil && concerns(p) {
				return true
			}
		}
	}
	return false
}
