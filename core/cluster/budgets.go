package cluster

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// budgetKind: a disruption budget says how many of the pods that it selects may
// be evicted. Preemption reads it; no local rule does.
var budgetKind = kindOf[*policyv1.PodDisruptionBudget]{
	new: func() *policyv1.PodDisruptionBudget { return &policyv1.PodDisruptionBudget{} },
	reads: func(o *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{ObjectMeta: trimMeta(&o.ObjectMeta), Spec: policyv1.PodDisruptionBudgetSpec{Selector: o.Spec.Selector},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: o.Status.DisruptionsAllowed, DisruptedPods: o.Status.DisruptedPods}}
	},
	lookUp: func(b *objects, o *policyv1.PodDisruptionBudget, sign int) {
		enlist(b.budgets, o.Namespace, parseBudget(o), sign)
	},
}

// Budget is a disruption budget with its selector.
type Budget struct {
	*policyv1.PodDisruptionBudget
	selector labels.Selector
}

// parseBudget reads a budget. A selector that can't be read covers nothing.
func parseBudget(o *policyv1.PodDisruptionBudget) *Budget {
	selector, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
	if err != nil {
		selector = labels.Nothing()
	}
	return &Budget{o, selector}
}

// Selects tells whether preempting a pod of the budget's namespace takes from it, as
// kube-scheduler counts: an empty selector selects nothing, and one that the API server has
// let go already isn't selected.
func (b *Budget) Selects(p *Pod) bool {
	_, gone := b.Status.DisruptedPods[p.Object.Name]
	return !gone && len(p.Object.Labels) > 0 && !b.selector.Empty() && b.Covers(p)
}

// Covers tells whether the API server asks the budget before it evicts a pod of the
// budget's namespace: an empty selector covers all (pkg/registry/core/pod/storage/eviction.go).
func (b *Budget) Covers(p *Pod) bool { return b.selector.Matches(labels.Set(p.Object.Labels)) }

// Budgets returns the disruption budgets of a namespace, by name. The list is
// valid until the next change.
func (s *State) Budgets(namespace string) []*Budget {
	return s.objects.budgets[namespace]
}
