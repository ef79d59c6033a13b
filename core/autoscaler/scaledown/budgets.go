package scaledown

import (
	"fmt"

	policyv1 "k8s.io/api/policy/v1"

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
	left  map[budgetKey]int32
	found []*cluster.Budget // scratch memory
}

type budgetKey struct{ namespace, name string }

// use is what the pods of one node take from a budget.
type use struct {
	budgetKey
	pods int32
	pod  *cluster.Pod // one of them
}

// newBudgets returns what is left for candidates: nodes on their way out aren't asked
// whether their pods may go, but their pods count.
func newBudgets(state *cluster.State, leaving []*cluster.Node, counts func(*cluster.Pod) bool) *budgets {
	b := &budgets{state: state, left: map[budgetKey]int32{}}
	for _, n := range leaving {
		for _, p := range n.Pods {
			if !counts(p) || p.Object.DeletionTimestamp != nil {
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

func key(b *cluster.Budget) budgetKey { return budgetKey{b.Namespace, b.Name} }

// remaining returns how many disruptions a budget allows still.
func (b *budgets) remaining(x *cluster.Budget) int32 {
	if n, ok := b.left[key(x)]; ok {
		return n
	}
	return x.Status.DisruptionsAllowed
}

// uses returns what pods that are to be evicted take from budgets, in their order.
func (b *budgets) uses(pods []*cluster.Pod) (out []use) {
	for _, p := range pods {
		b.found = b.state.AppendBudgets(b.found[:0], p)
	budgets:
		for _, x := range b.found {
			for i := range out {
				if out[i].budgetKey == key(x) {
					out[i].pods++
					continue budgets
				}
			}
			out = append(out, use{key(x), 1, p})
		}
	}
	return out
}

// refuse returns the first of the uses that a budget doesn't allow any more, and in words
// why; nil when all are allowed.
func (b *budgets) refuse(uses []use) (*use, string) {
	for i := range uses {
		u := &uses[i]
		o, _ := b.state.Object(cluster.BudgetKind, u.namespace, u.name).(*policyv1.PodDisruptionBudget)
		if o == nil {
			continue // it is gone since
		}
		left, ok := b.left[u.budgetKey]
		if !ok {
			left = o.Status.DisruptionsAllowed
		}
		switch {
		case o.Status.DisruptionsAllowed < 1:
			return u, fmt.Sprintf("disruption budget %s allows no disruption now", u.name)
		case left < 1:
			return u, fmt.Sprintf("the %d disruptions that budget %s allows now are those of pods on nodes that go, or could go, before this one", o.Status.DisruptionsAllowed, u.name)
		}
	}
	return nil, ""
}

// take counts uses down.
func (b *budgets) take(uses []use) {
	for i := range uses {
		u := &uses[i]
		if o, _ := b.state.Object(cluster.BudgetKind, u.namespace, u.name).(*policyv1.PodDisruptionBudget); o != nil {
			left, ok := b.left[u.budgetKey]
			if !ok {
				left = o.Status.DisruptionsAllowed
			}
			b.left[u.budgetKey] = left - u.pods
		}
	}
}
