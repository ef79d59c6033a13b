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
func (v *View) PlacedLines() (out []PodLine) {
	v.State.Pods(func(p *cluster.Pod) {
		if _, ours := v.Pods.Describe(p.UID); !ours {
			out = append(out, PodLine{Object: p.Object, Node: v.State.NodeNameOf(p)})
		}
	})
	return out
}

// LinesOn returns the lines of the pods on a node, those that are being bound to it among them, in no particular order, in O(pods).
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
	v.State.Pods(func(p *cluster.Pod) {
		if v.State.NodeNameOf(p) != node {
			return
		}
		if _, ours := v.Pods.Describe(p.UID); !ours {
			out = append(out, PodLine{Object: p.Object, Node: node})
		}
	})
	return out
}

// PodLine returns the line of one pod as PendingLines and PlacedLines have it, in O(pods), without making those of others; ok is
// false when there is no such pod.
func (v *View) PodLine(namespace, name string) (line PodLine, ok bool) {
	is := func(obj *v1.Pod) bool { return obj.Namespace == namespace && obj.Name == name }
	for p := range v.Pods.All() { // in any order: names are unique
		if !p.Parsed.StandsIn() && is(p.Parsed.Object) {
			return v.pendingLine(&p, v.newPendingFacts()), true
		}
	}
	for obj := range v.Others {
		if is(obj) {
			return othersLine(obj), true
		}
	}
	v.State.Pods(func(p *cluster.Pod) {
		if is(p.Object) && !p.StandsIn() {
			line, ok = PodLine{Object: p.Object, Node: v.State.NodeNameOf(p)}, true
		}
	})
	return line, ok
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
