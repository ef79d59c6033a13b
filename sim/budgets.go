package sim

import (
	"slices"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// This file is the disruption controller and the eviction subresource. What must hold: the
// status of a budget, which Berth reads, lags behind by 200 ms and the watch's latency; an
// eviction is decided on the counts of now, so that two can't use up one disruption.

// budget is a PodDisruptionBudget. Its object is never changed: a changed copy takes its
// place, since Berth has read the former one.
type budget struct {
	obj      *policyv1.PodDisruptionBudget
	selector labels.Selector
}

// addBudget creates a budget, with its status. A selector that can't be read selects
// nothing.
func (w *World) addBudget(o *policyv1.PodDisruptionBudget) {
	s, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
	if err != nil {
		s = labels.Nothing()
	}
	obj := *o
	b := &budget{obj: &obj, selector: s}
	w.budgets = append(w.budgets, b)
	obj.Status = w.status(b)
	w.storeObject(&obj)
}

// removeBudget deletes a budget.
func (w *World) removeBudget(o *policyv1.PodDisruptionBudget) {
	w.budgets = slices.DeleteFunc(w.budgets, func(b *budget) bool { return b.obj.Namespace == o.Namespace && b.obj.Name == o.Name })
	w.removeObject(o)
}

// recountBudgets has the disruption controller write the status of the budgets whose
// allowed disruptions have changed, 200 ms later. Call it after each change of a pod that a
// budget may count. Further calls until then change nothing.
func (w *World) recountBudgets() {
	if w.recounting || len(w.budgets) == 0 {
		return
	}
	w.recounting = true
	w.after(200*time.Millisecond, phaseWorld, func() {
		w.recounting = false
		for _, b := range w.budgets {
			now := w.status(b)
			if now.DisruptionsAllowed == b.obj.Status.DisruptionsAllowed {
				continue
			}
			obj := *b.obj
			obj.Status = now
			b.obj = &obj
			w.storeObject(&obj)
		}
	})
}

// covers tells whether the budget selects a pod.
func (b *budget) covers(p *pod) bool {
	return p.obj.Namespace == b.obj.Namespace && b.selector.Matches(labels.Set(p.obj.Labels))
}

// status returns what the disruption controller writes now, in O(pods): a pod without a
// controller is expected, and of a controller all its replicas are, those included that
// don't exist.
func (w *World) status(b *budget) policyv1.PodDisruptionBudgetStatus {
	healthy, expected := 0, 0
	owners := map[*controller]bool{}
	for _, p := range w.pods {
		if p.ended || !b.covers(p) {
			continue
		}
		if p.ready && !p.terminating() && !p.lost {
			healthy++
		}
		switch {
		case p.controller == nil:
			expected++
		case !owners[p.controller]:
			owners[p.controller] = true
			expected += p.controller.replicas
		}
	}
	desired := 0
	switch {
	case b.obj.Spec.MaxUnavailable != nil:
		maxUnavailable, err := intstr.GetScaledValueFromIntOrPercent(b.obj.Spec.MaxUnavailable, expected, true)
		if err == nil {
			desired = max(expected-maxUnavailable, 0)
		}
	case b.obj.Spec.MinAvailable != nil:
		minAvailable, err := intstr.GetScaledValueFromIntOrPercent(b.obj.Spec.MinAvailable, expected, true)
		if err == nil {
			desired = minAvailable
		}
	}
	return policyv1.PodDisruptionBudgetStatus{
		CurrentHealthy: int32(healthy), DesiredHealthy: int32(desired), ExpectedPods: int32(expected),
		DisruptionsAllowed: int32(max(healthy-desired, 0)),
	}
}

// disruptable tells whether every budget of a pod allows its eviction now. A pod that isn't
// ready takes nothing from a budget: it may always go.
func (w *World) disruptable(p *pod) bool {
	for _, b := range w.budgets {
		if !b.covers(p) {
			continue
		}
		if p.ready && w.status(b).DisruptionsAllowed < 1 {
			return false
		}
	}
	return true
}

// evict deletes a pod if its budgets allow it, as the eviction subresource does, and tells
// whether they do. A terminating pod counts as evicted. grace is how long the pod may take,
// nil for as long as it says itself.
func (w *World) evict(p *pod, grace *time.Duration) bool {
	if p.terminating() {
		return true
	}
	if !w.disruptable(p) {
		return false
	}
	w.stats.Evicted++
	if grace == nil {
		grace = ptr.To(p.grace())
	}
	w.terminatePod(p, *grace)
	return true
}
