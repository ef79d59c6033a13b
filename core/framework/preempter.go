package framework

import (
	"cmp"

	"github.com/berthproject/berth/core/cluster"
)

// Preempter says which pods may take the place of which others, and at what
// cost. Whether a pod fits once others are gone is for the rules to say.
type Preempter interface {
	Name() string
	// SignPreemption appends what it reads of the preempting pod, but for its
	// priority.
	SignPreemption(pod *cluster.Pod, sig *Signature)
	// Eligible returns why the pod mustn't preempt, or nil.
	Eligible(pod *cluster.Pod) *Reason
	// Order puts the pods of a node that may go into the order in which they are
	// to be kept if there is room, and returns how many of them, the first, would
	// violate a disruption budget if they went.
	Order(pods []*cluster.Pod, state *cluster.State) (violating int)
	// Cost ranks what has to go from a node, and sorts the victims, the most
	// important first.
	Cost(v *Victims) PreemptionCost
}

// Victims are the pods that have to leave a node.
type Victims struct {
	Pods       []*cluster.Pod
	Violations int // of disruption budgets
}

// PreemptionCost is compared in order; the lowest is preferred.
type PreemptionCost [5]int64

// Compare orders costs.
func (c *PreemptionCost) Compare(d *PreemptionCost) int {
	for i := range c {
		if x := cmp.Compare(c[i], d[i]); x != 0 {
			return x
		}
	}
	return 0
}
