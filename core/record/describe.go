package record

import (
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle/binding"
	"github.com/berthproject/berth/core/lifecycle/nodegroups"
	"github.com/berthproject/berth/core/weighing"
)

// Description is what is known of a pod at one moment, for people.
type Description struct {
	Parsed *cluster.Pod
	Seen   time.Time
	Asked  *nodegroups.Asked
	Node   string // as Pod.Node returns it
	// Decided says that it is nominated by a decision or by what somebody else has written.
	Decided     bool
	Permissions []binding.Permission // that it waits for on its node
	Condition   string               // the message of the last condition
	ScaleUp     string               // the message of the last event about a scale-up
	Weighed     *weighing.Result
}

func (p *Pod) describe() Description {
	return Description{
		Parsed: p.Parsed, Seen: p.Seen, Asked: p.Asked, Node: p.Node(), Decided: p.Nomination.Decided(),
		Permissions: p.Binding.Permissions(), Condition: p.Reports.Condition(), ScaleUp: p.Reports.ScaleUp(), Weighed: p.Weighing.Result,
	}
}

// HasNodeToWaitFor reports what Pod.HasNodeToWaitFor does.
func (d *Description) HasNodeToWaitFor(state *cluster.State) bool {
	return d.Decided && nominatedToAny(d.Parsed, state)
}

// Describe returns what is known of a pod; ok is false when there is no record of it.
func (p Pods) Describe(uid types.UID) (d Description, ok bool) {
	r := p[uid]
	if r == nil {
		return Description{}, false
	}
	return r.describe(), true
}

// Has reports whether Describe knows a pod.
func (p Pods) Has(uid types.UID) bool { return p[uid] != nil }

// WaitsSince returns when the pod was first seen that has waited longest for a node; zero when none waits. Pods
// that a gate of theirs holds, and stand-ins, aren't counted. It costs O(pods without a node).
func (p Pods) WaitsSince() (oldest time.Time) {
	for _, r := range p { // in any order
		if !r.Parsed.StandsIn() && r.Node() == "" && len(r.Parsed.Object.Spec.SchedulingGates) == 0 && (oldest.IsZero() || r.Seen.Before(oldest)) {
			oldest = r.Seen
		}
	}
	return oldest
}

// All ranges over what is known of all pods, in no particular order.
func (p Pods) All() iter.Seq[Description] {
	return func(yield func(Description) bool) {
		for _, r := range p {
			if !yield(r.describe()) {
				return
			}
		}
	}
}
