package engine

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// reasonCounts has a reason for each of some nodes, and counts the nodes by reason. Reasons are
// the same whose plugin, messages and finality are: quantities don't tell them apart.
//
// Invariant: a reason's nodes is how many entries of of have its number. One without nodes is
// forgotten, and its number is free.
type reasonCounts struct {
	of      []int32         // by node index, the number of its reason; 0 for none
	reasons []countedReason // by number
	byKey   map[string]int32
	free    []int32 // free numbers

	keyBuf []byte // scratch: the key of the reason that is looked for
}

// countedReason is one reason. Its deficits are those of one of the nodes.
type countedReason struct {
	why    *framework.Reason
	plugin int // whose rule rejects, by position in the profile, or noPlugin
	key    string
	nodes  int
}

func newReasonCounts() reasonCounts {
	return reasonCounts{reasons: make([]countedReason, 1), byKey: map[string]int32{}}
}

// set gives a node a reason, in place of the one that it has.
func (r *reasonCounts) set(i cluster.NodeIndex, why *framework.Reason, plugin int) {
	for len(r.of) <= int(i) {
		r.of = append(r.of, 0)
	}
	number := r.numberOf(why, plugin)
	r.reasons[number].nodes++ // first, or its number might be freed
	r.clear(i)
	r.of[i] = number
}

// number returns the number of a node's reason, 0 when it has none.
func (r *reasonCounts) number(i cluster.NodeIndex) int32 {
	if int(i) >= len(r.of) {
		return 0
	}
	return r.of[i]
}

// clear takes a node's reason away, if it has one.
func (r *reasonCounts) clear(i cluster.NodeIndex) {
	number := r.number(i)
	if number == 0 {
		return
	}
	old := &r.reasons[number]
	if old.nodes--; old.nodes == 0 {
		delete(r.byKey, old.key)
		*old = countedReason{}
		r.free = append(r.free, number)
	}
	r.of[i] = 0
}

// appendTo adds the reasons to a list, each at the place of its number.
func (r *reasonCounts) appendTo(list []rejected) []rejected {
	for i := range r.reasons {
		list = append(list, rejected{r.reasons[i].why, r.reasons[i].nodes, cluster.NoNode})
	}
	return list
}

// numberOf returns the number of a reason, which is made if there is none.
func (r *reasonCounts) numberOf(why *framework.Reason, plugin int) int32 {
	r.keyBuf = append(r.keyBuf[:0], why.Plugin...)
	for _, m := range why.Messages {
		r.keyBuf = append(append(r.keyBuf, 0), m...)
	}
	if why.Final {
		r.keyBuf = append(r.keyBuf, 0)
	}
	if plugin == noPlugin {
		r.keyBuf = append(r.keyBuf, 0, 0)
	}
	if number, ok := r.byKey[string(r.keyBuf)]; ok {
		return number
	}
	number := int32(len(r.reasons))
	if k := len(r.free); k > 0 {
		number = r.free[k-1]
		r.free = r.free[:k-1]
	} else {
		r.reasons = append(r.reasons, countedReason{})
	}
	key := string(r.keyBuf)
	r.reasons[number] = countedReason{why: why, plugin: plugin, key: key}
	r.byKey[key] = number
	return number
}
