package explain

// This file lists nodes for people, one line each: what of them is requested, what they cost,
// and why they stay.

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// NodeLine is a node in one line.
type NodeLine struct {
	// Node is the name of the node, by which lines that are otherwise equal are sorted.
	Node  string `json:"node"`
	Group string `json:"group,omitempty"` // "" when it is in none
	// Ready is the node's condition; a ready node may be cordoned or tainted all the same.
	Ready bool    `json:"ready"`
	Price float64 `json:"price,omitempty"` // an hour
	// State and Reason are for scale-down, as in NodeExplanation; "" when Berth only schedules.
	State  string                `json:"state,omitempty"`
	Reason autoscaler.KeptReason `json:"reason,omitempty"`
	Pod    string                `json:"pod,omitempty"`  // that keeps it, as namespace/name
	Step   string                `json:"step,omitempty"` // of one on its way out, as core/lifecycle/nodedeletion has them
	// Unschedulable says that it is cordoned.
	Unschedulable bool `json:"unschedulable,omitempty"`
	// Pods counts all pods on the node, those of DaemonSets and static pods included.
	Pods   int `json:"pods"`
	CPU    Use `json:"cpu"`    // in thousandths
	Memory Use `json:"memory"` // in bytes
}

// Use is how much of a resource of a node its pods request.
type Use struct {
	// Requested is the sum of the requests of the pods that count for the node, in the unit of
	// Allocatable. It is larger than Allocatable when the node shrank or was overcommitted.
	Requested   int64 `json:"requested"`
	Allocatable int64 `json:"allocatable"`
}

// Share returns the share that is requested, 0 of a resource that the node hasn't.
func (u Use) Share() float64 {
	if u.Allocatable <= 0 {
		return 0
	}
	return float64(u.Requested) / float64(u.Allocatable)
}

// NodeLines returns a line for each node, and how many nodes there are: those on their way out
// first, then those that aren't ready, then those that could go, then the others, each by rising
// share of what is requested. It returns limit lines at most.
func (v *View) NodeLines(limit int) (lines []NodeLine, nodes int) {
	removals := v.removals()
	add := func(n *cluster.Node) { lines = append(lines, v.nodeLine(n, removals[n.Name])) }
	lines = make([]NodeLine, 0, v.State.Len())
	v.State.Nodes(add)
	if v.Autoscaler != nil {
		v.Autoscaler.Deletions.EachOutOfState(func(info *cluster.NodeInfo) { add(cluster.DetachedNode(info)) })
	}
	slices.SortFunc(lines, func(a, b NodeLine) int {
		return cmp.Or(cmp.Compare(a.order(), b.order()), cmp.Compare(a.share(), b.share()), strings.Compare(a.Node, b.Node))
	})
	return lines[:min(len(lines), max(limit, 0))], len(lines)
}

// removals returns what the last plan has of each node that it could do without, by name; empty before the first plan.
func (v *View) removals() map[string]*autoscaler.Removal {
	out := map[string]*autoscaler.Removal{}
	if v.Autoscaler == nil {
		return out
	}
	if plan := v.Autoscaler.KeptNodes.Plan(); plan != nil {
		for _, r := range plan.Removals {
			out[r.Node] = r
		}
	}
	return out
}

// nodeLine returns the line of a node of which the last plan has a removal; nil for none.
func (v *View) nodeLine(n *cluster.Node, removal *autoscaler.Removal) NodeLine {
	x := NodeLine{
		Node: n.Name, Group: n.Group, Ready: n.Ready(), Unschedulable: n.Object.Spec.Unschedulable, Pods: len(n.Pods),
		CPU:    Use{n.Requested.At(cluster.CPU), n.Allocatable.At(cluster.CPU)},
		Memory: Use{n.Requested.At(cluster.Memory), n.Allocatable.At(cluster.Memory)},
	}
	if v.Autoscaler == nil {
		return x
	}
	at := v.Autoscaler.Nodes.Of(v.Now(), n, removal)
	x.Price, x.State, x.Reason = v.price(n.Group), at.State, at.Reason
	switch at.State {
	case NodeStays:
		x.Pod = at.Stay.Pod
	case NodeLeaving:
		x.Step = at.Way.State
	}
	return x
}

// order returns the rank of a line in the list; lines of a lower rank come first.
func (x *NodeLine) order() int {
	switch {
	case x.State == NodeLeaving:
		return 0
	case !x.Ready:
		return 1
	case x.State == NodeCandidate:
		return 2
	}
	return 3
}

// share returns the larger of the shares of CPU and memory that are requested: the scarcer one
// limits what the node still takes.
func (x *NodeLine) share() float64 { return max(x.CPU.Share(), x.Memory.Share()) }
