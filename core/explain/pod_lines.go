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
)

// PodLine is a pod in one line.
type PodLine struct {
	// Object may be from before the pod was bound. It must not be changed.
	Object *v1.Pod
	Node   string // "" for none
	// State, Reason and Plugin are as in PendingPods; all are "" for a pod that the API has on a node.
	State, Reason, Plugin string
	Since                 time.Time // when Berth first saw it without a node; zero for pods on nodes, and of other schedulers
	Attempts              int
	// Coming is the node that is being waited for; nil for none.
	Coming *ComingNode
}

// PendingLines returns a line for each pod that the API has on no node, in no particular order, in
// O(pods without a node + nodes).
func (v *View) PendingLines() (out []PodLine) {
	groups, waiting, preempts := v.pendingFacts()
	for p := range v.Pods.All() {
		if p.Parsed.StandsIn() {
			continue
		}
		s := v.pendingState(&p, preempts[p.Parsed.UID], waiting, groups)
		line := PodLine{Object: p.Parsed.Object, Node: p.Node, State: s.State, Reason: s.Reason, Plugin: s.Plugin, Since: p.Seen.UTC()}
		if item := v.Queue.Get(p.Parsed.UID); item != nil {
			line.Attempts = item.Attempts()
		}
		if place, ok := v.Places.Of(p.Parsed.UID); ok && v.Autoscaler != nil {
			line.Coming = &ComingNode{Group: place.Group, Node: place.Node, Reserved: true, Expectation: v.expect(place.Group, place.Since)}
		}
		out = append(out, line)
	}
	for obj := range v.Others {
		out = append(out, PodLine{Object: obj, State: PendingUnmanaged, Reason: obj.Spec.SchedulerName})
	}
	return out
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

// pendingFacts returns what pendingState asks of each pod: the node groups, the latest diagnosis of the
// classes that wait, and which pods have victims that are leaving.
func (v *View) pendingFacts() ([]*cluster.NodeGroup, map[*engine.Class]*engine.Diagnosis, map[types.UID]bool) {
	waiting, preempts := map[*engine.Class]*engine.Diagnosis{}, map[types.UID]bool{}
	v.Queue.Each(func(w *queue.WaitingClass) { waiting[w.Class()] = w.Diagnosis() })
	v.Victims.EachVictim(func(_, by types.UID) { preempts[by] = true })
	return v.State.Groups(), waiting, preempts
}
