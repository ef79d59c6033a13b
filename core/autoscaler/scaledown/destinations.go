package scaledown

import (
	"slices"

	"github.com/berthproject/berth/core/autoscaler/drainability"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
)

// This file says where the pods of nodes would go if these alone were removed now, for people
// who ask. A pass asks more: all candidates go together, and it ends at the first pod that
// has nowhere to go.

// WhatIf answers on a state that others change: it takes back what it tries. Between two
// questions it holds nothing but its engines.
type WhatIf struct {
	state *cluster.State
	packers
}

// NewWhatIf returns what answers on a state, or an error that names the profile for which
// there can be no engine.
func NewWhatIf(state *cluster.State, profiles []*framework.Profile, how engine.Options) (*WhatIf, error) {
	packing, err := newPackers(state, profiles, how)
	if err != nil {
		return nil, err
	}
	return &WhatIf{state, packing}, nil
}

// Destination is where a pod would go.
type Destination struct {
	Pod  *cluster.Pod
	Node string // "" when no other node has room
	Why  string // of no node, in kube-scheduler's words
}

// Destinations returns where the pods of nodes would go that have to leave them before all these are
// removed, in the order in which a pass places them. Those that keep a node are among them,
// as if they might leave. It costs O(nodes) for each class of theirs.
func (w *WhatIf) Destinations(rules *drainability.Context, nodes ...*cluster.Node) (out []Destination) {
	mark := w.state.Mark()
	defer w.state.Rollback(mark)
	var movers []*cluster.Pod
	for _, n := range nodes {
		for _, p := range n.Pods {
			if o := rules.Judge(p).Outcome; o == drainability.Evict || o == drainability.Block {
				movers = append(movers, p)
			}
		}
	}
	slices.SortFunc(movers, largestFirst)
	for _, n := range nodes {
		w.state.SetNode(asLeaving(n.NodeInfo))
	}
	for _, p := range movers {
		w.state.Remove(p.UID)
	}
	for _, p := range movers {
		e := w.engine(p)
		class := e.Class(p)
		d := Destination{Pod: p}
		if best, ok := e.Best(class); ok {
			d.Node = w.state.Node(best.Node).Name
			w.state.PlaceAt(p, best.Node)
		} else {
			d.Why = e.Diagnose(class).Message()
		}
		out = append(out, d)
	}
	w.sched.ForgetAllClasses()
	return out
}
