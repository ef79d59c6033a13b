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
// eviction is decided on the counts of now, so that two can't use up one disruption. Counts
// are kept as pods change, since a world may have 30,000 pods and hundreds of budgets:
// whoever changes what budgets count of a pod calls countPod or recountBudgets.

// budget is a PodDisruptionBudget. Its object is never changed: a changed copy takes its
// place, since Berth has read the former one.
type budget struct {
	obj      *policyv1.PodDisruptionBudget
	selector labels.Selector
	counts   budgetCounts
}

// budgetCounts are what a budget counts of the pods that it selects.
type budgetCounts struct {
	healthy int
	// expected counts each pod without a controller, and of each controller of owned all
	// its replicas, those included that don't exist.
	expected int
	owned    map[*controller]int // how many pods exist, at least 1
}

// podCount is what budgets count of one pod.
type podCount struct{ exists, healthy bool }

// count returns what budgets are to count of the pod as it is now.
func (p *pod) count() podCount {
	exists := !p.gone && !p.ended
	return podCount{exists, exists && p.ready && !p.terminating() && !p.lost}
}

// add counts a pod as after in the place of before.
func (c *budgetCounts) add(p *pod, before, after podCount) {
	c.healthy += toInt(after.healthy) - toInt(before.healthy)
	change := toInt(after.exists) - toInt(before.exists)
	if p.controller == nil || change == 0 {
		c.expected += change
		return
	}
	had := c.owned[p.controller]
	switch c.owned[p.controller] = had + change; {
	case had == 0:
		c.expected += p.controller.replicas
	case had+change == 0:
		delete(c.owned, p.controller)
		c.expected -= p.controller.replicas
	}
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// addBudget creates a budget, with its status. A selector that can't be read selects
// nothing.
func (w *World) addBudget(o *policyv1.PodDisruptionBudget) {
	s, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
	if err != nil {
		s = labels.Nothing()
	}
	obj := *o
	b := &budget{obj: &obj, selector: s, counts: budgetCounts{owned: map[*controller]int{}}}
	w.budgets = append(w.budgets, b)
	for _, p := range w.pods {
		if b.covers(p) {
			w.countPod(p)
			p.budgets = append(p.budgets, b)
			b.counts.add(p, podCount{}, p.counted)
		}
	}
	obj.Status = b.status()
	w.storeObject(&obj)
}

// removeBudget deletes a budget.
func (w *World) removeBudget(o *policyv1.PodDisruptionBudget) {
	named := func(b *budget) bool { return b.obj.Namespace == o.Namespace && b.obj.Name == o.Name }
	w.budgets = slices.DeleteFunc(w.budgets, named)
	for _, p := range w.pods {
		p.budgets = slices.DeleteFunc(p.budgets, named)
	}
	w.removeObject(o)
}

// findBudgets finds the budgets that select a new pod. Labels of pods don't change.
func (w *World) findBudgets(p *pod) {
	for _, b := range w.budgets {
		if b.covers(p) {
			p.budgets = append(p.budgets, b)
		}
	}
	w.countPod(p)
}

// countPod makes the budgets that select a pod count it as it is now.
func (w *World) countPod(p *pod) {
	now := p.count()
	if now == p.counted {
		return
	}
	for _, b := range p.budgets {
		b.counts.add(p, p.counted, now)
	}
	p.counted = now
}

// recountBudgets counts a changed pod, and makes the disruption controller write the status of
// the budgets whose allowed disruptions have changed, 200 ms later. Until then further calls
// change nothing but the counts.
func (w *World) recountBudgets(p *pod) {
	w.countPod(p)
	if w.recounting || len(w.budgets) == 0 {
		return
	}
	w.recounting = true
	w.after(200*time.Millisecond, phaseWorld, func() {
		w.recounting = false
		for _, b := range w.budgets {
			now := b.status()
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

// covers reports whether the budget selects a pod.
func (b *budget) covers(p *pod) bool {
	return p.obj.Namespace == b.obj.Namespace && b.selector.Matches(labels.Set(p.obj.Labels))
}

// status returns what the disruption controller writes now.
func (b *budget) status() policyv1.PodDisruptionBudgetStatus {
	healthy, desired := b.counts.healthy, b.desired(b.counts.expected)
	return policyv1.PodDisruptionBudgetStatus{
		CurrentHealthy: int32(healthy), DesiredHealthy: int32(desired), ExpectedPods: int32(b.counts.expected),
		DisruptionsAllowed: int32(max(healthy-desired, 0)),
	}
}

// desired returns how many of so many expected pods must be healthy.
func (b *budget) desired(expected int) int {
	switch {
	case b.obj.Spec.MaxUnavailable != nil:
		maxUnavailable, err := intstr.GetScaledValueFromIntOrPercent(b.obj.Spec.MaxUnavailable, expected, true)
		if err == nil {
			return max(expected-maxUnavailable, 0)
		}
	case b.obj.Spec.MinAvailable != nil:
		minAvailable, err := intstr.GetScaledValueFromIntOrPercent(b.obj.Spec.MinAvailable, expected, true)
		if err == nil {
			return minAvailable
		}
	}
	return 0
}

// disruptable reports whether every budget of a pod allows its eviction now. A pod that isn't
// ready takes nothing from a budget: it may always go.
func (w *World) disruptable(p *pod) bool {
	return !p.ready || !slices.ContainsFunc(p.budgets, func(b *budget) bool { return b.status().DisruptionsAllowed < 1 })
}

// evict deletes a pod if its budgets allow it, as the eviction subresource does, and reports
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
