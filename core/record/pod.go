// Package record has what the core knows of each pod that it is to schedule. The core makes and
// forgets the records; each lifecycle machine reaches its own part of them through a Part.
package record

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle/binding"
	"github.com/berthproject/berth/core/lifecycle/comparison"
	"github.com/berthproject/berth/core/lifecycle/consulting"
	"github.com/berthproject/berth/core/lifecycle/expectation"
	"github.com/berthproject/berth/core/lifecycle/headroom"
	"github.com/berthproject/berth/core/lifecycle/nodegroups"
	"github.com/berthproject/berth/core/lifecycle/nomination"
	"github.com/berthproject/berth/core/lifecycle/preemption"
	"github.com/berthproject/berth/core/lifecycle/reporting"
	"github.com/berthproject/berth/core/weighing"
)

// Pods are the records of the core by UID.
type Pods map[types.UID]*Pod

// Pod is the record of a pod of our profiles that the API doesn't show on a node yet, or of a
// stand-in. Each lifecycle machine has a part of it, of which only that machine reads and writes
// the fields. The other fields are the core's.
type Pod struct {
	Parsed   *cluster.Pod      // as the API had it last
	Seen     time.Time         // when it was first shown without a node
	Planned  bool              // a plan was asked for with it pending
	Appeared bool              // a home was asked for it, if there was one
	Asked    *nodegroups.Asked // the last order with a place for it; for people

	Consulting consulting.Pod
	Preemption preemption.Pod
	Binding    binding.Pod
	Nomination nomination.Pod
	Expected   expectation.Pod
	Reports    reporting.Pod
	Headroom   headroom.Pod
	Compared   comparison.Pod
	Weighing   Weighing
}

// Weighing is what became of a pod that could preempt. The zero value is of a pod that has
// neither asked nor been given a place.
type Weighing struct {
	Asked bool
	Since time.Time // when it asked, or was given a place unasked
	// Request is the number of the plan's request that it was pending in, the last; 0 for
	// none since it asked.
	Request uint64
	// Result is of the last decision; for people, but for the cost of preempting, by which
	// Cheapest decides.
	Result *weighing.Result
}

// Node returns the node in the state where the pod is bound to, where another scheduler is
// expected to put it, where a shadow's decision has put it, or where a stand-in has its room;
// "" for none.
func (p *Pod) Node() string {
	if node := p.Binding.Node(); node != "" {
		return node
	}
	if node := p.Expected.Node(); node != "" {
		return node
	}
	if node := p.Compared.Node(); node != "" {
		return node
	}
	return p.Headroom.Node()
}

// HasNodeToWaitFor reports whether a pod is nominated to a node that exists, by a decision or
// by what somebody else has written.
func (p *Pod) HasNodeToWaitFor(state *cluster.State) bool {
	return p.Nomination.Decided() && nominatedToAny(p.Parsed, state)
}

// nominatedToAny reports whether a pod is nominated to a node that exists.
func nominatedToAny(pod *cluster.Pod, state *cluster.State) bool {
	return state.NodeByName(state.NominatedTo(pod.UID)) != nil
}
