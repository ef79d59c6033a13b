package cluster

import (
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// budgetKind: a disruption budget says how many of the pods that it selects may
// be evicted. Preemption reads it; no local rule does.
var budgetKind = kindOf[*policyv1.PodDisruptionBudget]{
	new: func() *policyv1.PodDisruptionBudget { return &policyv1.PodDisruptionBudget{} },
	reads: func(o *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{ObjectMeta: trimMeta(&o.ObjectMeta), Spec: policyv1.PodDisruptionBudgetSpec{Selector: o.Spec.Selector, UnhealthyPodEvictionPolicy: o.Spec.UnhealthyPodEvictionPolicy},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: o.Status.DisruptionsAllowed, DisruptedPods: o.Status.DisruptedPods,
				CurrentHealthy: o.Status.CurrentHealthy, DesiredHealthy: o.Status.DesiredHealthy}}
	},
	lookUp: func(b *objects, o *policyv1.PodDisruptionBudget, sign int) {
		budget := parseBudget(o)
		enlist(b.budgets, o.Namespace, budget, sign)
		enlist(b.budgetsByLabel, budget.firstLabel(), budget, sign)
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

// Selects reports whether preempting a pod of the budget's namespace takes from it, as
// kube-scheduler counts: an empty selector selects nothing, and one that the API server has
// let go already isn't selected.
func (b *Budget) Selects(p *Pod) bool {
	_, gone := b.Status.DisruptedPods[p.Object.Name]
	return !gone && len(p.Object.Labels) > 0 && !b.selector.Empty() && b.Covers(p)
}

// Covers reports whether the API server asks the budget before it evicts a pod of the
// budget's namespace: an empty selector covers all (pkg/registry/core/pod/storage/eviction.go).
func (b *Budget) Covers(p *Pod) bool { return b.selector.Matches(labels.Set(p.Object.Labels)) }

// LetsUnreadyGo reports whether the API server lets a pod go that the budget covers and that
// isn't ready, though the budget allows no disruption (eviction.go there): by its
// UnhealthyPodEvictionPolicy always, or, by default, if the application isn't disrupted.
func (b *Budget) LetsUnreadyGo() bool {
	if p := b.Spec.UnhealthyPodEvictionPolicy; p != nil && *p == policyv1.AlwaysAllow {
		return true
	}
	return b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0
}

// firstLabel returns what the budget is looked up by: the first label, by key, of which it
// wants one value. A budget that wants none is under its namespace alone.
func (b *Budget) firstLabel() serviceKey {
	requirements, _ := b.selector.Requirements()
	for _, r := range requirements {
		if values := r.ValuesUnsorted(); len(values) == 1 && (r.Operator() == selection.In || r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals) {
			return serviceKey{b.Namespace, r.Key(), values[0]}
		}
	}
	return serviceKey{namespace: b.Namespace}
}

// AppendBudgets appends the disruption budgets that evicting a pod takes from, by name: those
// that cover it, unless it was let go already. It looks at those only whose first label is the
// pod's.
func (s *State) AppendBudgets(out []*Budget, p *Pod) []*Budget {
	if len(s.objects.budgets[p.Object.Namespace]) == 0 {
		return out
	}
	from := len(out)
	add := func(key serviceKey) {
		for _, b := range s.objects.budgetsByLabel[key] {
			if _, gone := b.Status.DisruptedPods[p.Object.Name]; !gone && b.Covers(p) {
				out = append(out, b)
			}
		}
	}
	add(serviceKey{namespace: p.Object.Namespace})
	for k, v := range p.Object.Labels { // in any order
		add(serviceKey{p.Object.Namespace, k, v})
	}
	slices.SortFunc(out[from:], func(a, b *Budget) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Budgets returns the disruption budgets of a namespace, by name. The list is
// valid until the next change.
func (s *State) Budgets(namespace string) []*Budget {
	return s.objects.budgets[namespace]
}
