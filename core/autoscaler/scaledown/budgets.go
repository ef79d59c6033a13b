package scaledown

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berthproject/berth/core/cluster"
)

// This file counts down the disruption budgets over a pass. What must hold: a candidate finds a
// disruption left in every budget of its pods when those of the candidates before it, and the
// pods that are still on nodes on their way out, have taken theirs. A node may have more pods
// of a budget than are left: its drain then takes them in turn, as their replacements come,
// and until then no other node is a candidate that has pods of the budget. So has Cluster
// Autoscaler.

// budgets are what is left of the disruption budgets.
type budgets struct {
	state *cluster.State
	surge bool // pods leave without an eviction whose Deployments ask for that (--surge)
	left  map[budgetKey]int32
	found []*cluster.Budget // scratch memory
}

type budgetKey struct{ namespace, name string }

// use is what the pods of one node take from a budget. A pod that isn't ready takes nothing:
// the budget counts it as away already.
type use struct {
	budgetKey
	ready int32        // pods that are ready
	pod   *cluster.Pod // one of them, or, when there is none, of the others
}

// newBudgets returns what is left for candidates: nodes on their way out aren't asked
// whether their pods may go, but their pods count.
func newBudgets(state *cluster.State, surge bool, leaving []*cluster.Node, counts func(*cluster.Pod) bool) *budgets {
	b := &budgets{state: state, surge: surge, left: map[budgetKey]int32{}}
	for _, n := range leaving {
		for _, p := range n.Pods {
			if !counts(p) || p.Object.DeletionTimestamp != nil || !state.Ready(p.UID) || b.spares(p) {
				continue
			}
			b.found = state.AppendBudgets(b.found[:0], p)
			for _, x := range b.found {
				b.left[key(x)] = b.remaining(x) - 1
			}
		}
	}
	return b
}

// spares reports whether a pod leaves without a disruption: its successor is ready first.
func (b *budgets) spares(p *cluster.Pod) bool { return b.surge && b.state.IsSurgedAlone(p) }

func key(b *cluster.Budget) budgetKey { return budgetKey{b.Namespace, b.Name} }

// remaining returns how many disruptions a budget allows still.
func (b *budgets) remaining(x *cluster.Budget) int32 {
	if n, ok := b.left[key(x)]; ok {
		return n
	}
	return x.Status.DisruptionsAllowed
}

// appendUses appends what pods that are to be evicted take from budgets, in their order, to an
// empty list.
func (b *budgets) appendUses(out []use, pods []*cluster.Pod) []use {
	for _, p := range pods {
		if b.spares(p) {
			continue
		}
		b.found = b.state.AppendBudgets(b.found[:0], p)
		ready := int32(0)
		if b.state.Ready(p.UID) {
			ready = 1
		}
	budgets:
		for _, x := range b.found {
			for i := range out {
				if u := &out[i]; u.budgetKey == key(x) {
					if u.ready == 0 {
						u.pod = p
					}
					u.ready += ready
					continue budgets
				}
			}
			out = append(out, use{key(x), ready, p})
		}
	}
	return out
}

// refuse returns the first of the uses that a budget doesn't allow any more, and in words
// why; nil when all are allowed.
func (b *budgets) refuse(uses []use) (*use, string) {
	for i := range uses {
		u := &uses[i]
		x := b.budget(u)
		if x == nil || u.ready == 0 && x.LetsUnreadyGo() {
			continue
		}
		switch {
		case x.Status.DisruptionsAllowed < 1:
			return u, fmt.Sprintf("disruption budget %s allows no disruptions now", u.name)
		case b.remaining(x) < 1:
			return u, fmt.Sprintf("the %d disruption(s) that budget %s allows now are needed for pods on nodes that are removed, or removable, before this one", x.Status.DisruptionsAllowed, u.name)
		}
	}
	return nil, ""
}

// budget returns the budget of a use, nil when it is gone since.
func (b *budgets) budget(u *use) *cluster.Budget {
	list := b.state.Budgets(u.namespace)
	i, ok := slices.BinarySearchFunc(list, u.name, func(x *cluster.Budget, name string) int { return strings.Compare(x.Name, name) })
	if !ok {
		return nil
	}
	return list[i]
}

// draw counts uses down.
func (b *budgets) draw(uses []use) {
	for i := range uses {
		if x := b.budget(&uses[i]); x != nil {
			b.left[key(x)] = b.remaining(x) - uses[i].ready
		}
	}
}
