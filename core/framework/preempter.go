package framework

import (
	"cmp"

	"github.com/berthproject/berth/core/cluster"
)

// Preempter says which pods may preempt which others, and at what cost
// (kube-scheduler's DefaultPreemption). That a pod preempts only pods of lower
// priority is the engine's, and whether it fits once they are gone the rules'.
type Preempter interface {
	Name() string
	// SignPreemption appends what Eligible reads of the preempting pod, but for its
	// priority, which is part of every class.
	SignPreemption(pod *cluster.Pod, sig *Signature)
	// Eligible returns why the pod mustn't preempt, or nil.
	Eligible(pod *cluster.Pod) *Reason
	// Order sorts what could leave into the order in which it is to be kept if there is
	// room, and sets in each unit how many of its pods would violate a disruption budget.
	// The first violating units have such pods. The state is without all of them when it is
	// called.
	Order(units []Unit, state *cluster.State) (violating int)
	// Success returns what a pod's condition says when victims leave a node for it; "" for nothing.
	Success(node string, victims int) string
	// Cost returns what it costs that the victims leave their node, and sorts them,
	// the most important first. There is at least one.
	Cost(v *Victims) PreemptionCost
}

// Unit is what leaves its nodes together or stays: a pod, or the placed members of a pod group
// whose disruptionMode is all.
type Unit struct {
	Pods  []*cluster.Pod      // at least one
	Nodes []cluster.NodeIndex // of the pods, one by one
	Group bool
	// Violations is how many of the pods would violate a disruption budget; Preempter.Order sets
	// it.
	Violations int
}

// Victims are the pods that have to leave for a pod. With a member of a pod group whose
// disruptionMode is all go the others, wherever they are.
type Victims struct {
	Pods       []*cluster.Pod
	Violations int // how many of them violate a disruption budget
}

// PreemptionCost is a list of criteria, the most important first; the node with the
// lowest cost is preferred.
type PreemptionCost [5]int64

// Compare returns -1 if c is lower than d, 1 if it is higher, 0 if they are equal.
func (c *PreemptionCost) Compare(d *PreemptionCost) int {
	for i := range c {
		if x := cmp.Compare(c[i], d[i]); x != 0 {
			return x
		}
	}
	return 0
}
