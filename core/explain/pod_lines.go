package explain

// This file lists pods for people, one line each: where those with a node are, and what the others
// wait for.

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/record"
)

// PodLine is a pod in one line.
type PodLine struct {
	// Object may be from before the pod was bound. It must not be changed.
	Object *v1.Pod
	Node   string // "" for none
	// State, Reason and Plugin are as in PendingCause; all are "" for a pod that the API has on a node.
	State, Reason, Plugin string
	Since                 time.Time // when Berth first saw it without a node; zero for pods on nodes, and of other schedulers
	Attempts              int
	// Coming is the node that is being waited for; nil for none.
	Coming *ComingNode
}

// PendingLines returns a line for each pod that the API has on no node, in no particular order, in
// O(pods without a node + nodes).
func (v *View) PendingLines() (out []PodLine) {
	facts := v.newPendingFacts()
	for p := range v.Pods.All() {
		if !p.Parsed.StandsIn() {
			out = append(out, v.pendingLine(&p, facts))
		}
	}
	for obj := range v.Others {
		out = append(out, othersLine(obj))
	}
	return out
}

// pendingLine returns the line of a pod of our profiles that the API has on no node.
func (v *View) pendingLine(p *record.Description, facts *pendingFacts) PodLine {
	s := v.pendingCause(p, facts)
	line := PodLine{Object: p.Parsed.Object, Node: p.Node, State: s.State, Reason: s.Reason, Plugin: s.Plugin, Since: p.Seen.UTC()}
	if item := v.Queue.Get(p.Parsed.UID); item != nil {
		line.Attempts = item.Attempts()
	}
	if place, ok := v.Places.Of(p.Parsed.UID); ok && v.Autoscaler != nil {
		line.Coming = &ComingNode{Group: place.Group, Node: place.Node, Reserved: true, Expectation: v.expect(place.Group, place.Since)}
	}
	return line
}

// othersLine returns the line of a pod of another scheduler that has no node.
func othersLine(obj *v1.Pod) PodLine {
	s := unmanaged(obj)
	return PodLine{Object: obj, State: s.State, Reason: s.Reason}
}

// PlacedLines returns a line for each pod that the API has on a node, in no particular order, in
// O(pods). Pods that are being bound are among PendingLines only.
func (v *View) PlacedLines() []PodLine {
	out := make([]PodLine, 0, v.State.PodCount())
	v.State.PodsByNode(func(node string, p *cluster.Pod) {
		if !v.Pods.Has(p.UID) {
			out = append(out, PodLine{Object: p.Object, Node: node})
		}
	})
	return out
}

// LinesOn returns the lines of the pods on a node, those that are being bound to it among them, in no particular order, in
// O(pods of the node + pods without a node).
func (v *View) LinesOn(node string) (out []PodLine) {
	var facts *pendingFacts
	for p := range v.Pods.All() {
		if p.Node != node || p.Parsed.StandsIn() {
			continue
		}
		if facts == nil {
			facts = v.newPendingFacts()
		}
		out = append(out, v.pendingLine(&p, facts))
	}
	v.State.PodsOn(node, func(p *cluster.Pod) {
		if !v.Pods.Has(p.UID) {
			out = append(out, PodLine{Object: p.Object, Node: node})
		}
	})
	return out
}

// PodDetail returns the line of one pod, as in PendingLines and PlacedLines, together with its explanation; ok is false when
// there is no such pod. It costs O(pods), and makes no line but this one.
func (v *View) PodDetail(namespace, name string) (line PodLine, x Explanation, ok bool) {
	f := v.find(namespace, name)
	switch {
	case f.standsIn():
		return line, x, false
	case f.ours != nil:
		line = v.pendingLine(f.ours, v.newPendingFacts())
	case f.foreign != nil:
		line = othersLine(f.foreign)
	case f.placed != nil:
		line = PodLine{Object: f.placed.Object, Node: v.State.NodeNameOf(f.placed)}
	}
	x, ok = v.explain(namespace, name, f)
	return line, x, ok
}

// sought is the pod of a name: at most one field is set, none if there is no such pod.
type sought struct {
	ours    *record.Description // the API has it on no node
	foreign *v1.Pod             // another scheduler's, on no node
	placed  *cluster.Pod
}

// standsIn reports whether the pod stands in for others, and isn't the API's.
func (f *sought) standsIn() bool {
	return f.ours != nil && f.ours.Parsed.StandsIn()
}

// find returns the pod of a name, in O(pods). Names are unique in the API, but a stand-in may have the name of a pod there:
// that pod goes first.
func (v *View) find(namespace, name string) (f sought) {
	is := func(obj *v1.Pod) bool { return obj.Name == name && obj.Namespace == namespace }
	for p := range v.Pods.All() { // in any order: only one is the API's
		if !is(p.Parsed.Object) {
			continue
		}
		if f.ours = &p; !p.Parsed.StandsIn() {
			return f
		}
	}
	for obj := range v.Others {
		if is(obj) {
			return sought{foreign: obj}
		}
	}
	v.State.Pods(func(p *cluster.Pod) {
		if is(p.Object) && !p.StandsIn() {
			f = sought{placed: p}
		}
	})
	return f
}

// pendingFacts is what pendingCause asks of each pod.
type pendingFacts struct {
	groups   []*cluster.NodeGroup
	waiting  map[*engine.Class]*engine.Diagnosis // the latest of each class that waits
	preempts map[types.UID]bool                  // pods whose victims are leaving
	most     map[*engine.Diagnosis][2]string     // what mostNodes has returned: pods of a class share a diagnosis
}

func (v *View) newPendingFacts() *pendingFacts {
	f := &pendingFacts{v.State.Groups(), map[*engine.Class]*engine.Diagnosis{}, map[types.UID]bool{}, map[*engine.Diagnosis][2]string{}}
	v.Queue.Each(func(w *queue.WaitingClass) { f.waiting[w.Class()] = w.Diagnosis() })
	v.Victims.EachVictim(func(_, by types.UID) { f.preempts[by] = true })
	return f
}

// mostNodes is the function of that name, asked once for each diagnosis.
func (f *pendingFacts) mostNodes(d *engine.Diagnosis) (plugin, reason string) {
	known, ok := f.most[d]
	if !ok {
		known[0], known[1] = mostNodes(d)
		f.most[d] = known
	}
	return known[0], known[1]
}
