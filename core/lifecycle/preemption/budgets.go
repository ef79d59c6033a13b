package preemption

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
)

// This file draws disruption budgets down by the victims on their way out. The disruption
// controller lowers a budget's status only when a victim has begun to terminate. Until then
// the state has the budget as an eviction would leave it: the victim is among the disrupted
// pods, and one disruption fewer is allowed. So decisions that follow at once see it.
//
// Whether the API's status counts a victim is inferred: each time currentHealthy falls by n, the
// n victims that were chosen first are counted. A victim that wasn't ready when it was chosen isn't
// among the healthy, and draws nothing. One that is gone before the status counts it draws the budget
// down until it does, for countedWithin at most: its successor may have become ready meanwhile.

// countedWithin is how long the status of a budget may take to count a victim that is gone: the
// disruption controller forgets disrupted pods after that time, too.
const countedWithin = 2 * time.Minute

// budgetKey names a disruption budget.
type budgetKey struct{ namespace, name string }

func keyOf(b *policyv1.PodDisruptionBudget) budgetKey { return budgetKey{b.Namespace, b.Name} }

// budgets are the budgets that victims on their way out draw down.
type budgets map[budgetKey]*drawnBudget

// drawnBudget is a budget with the victims that it selected when they were chosen; there is at
// least one.
type drawnBudget struct {
	shown   *policyv1.PodDisruptionBudget // as the API last showed it
	victims []drawing                     // in the order in which they were chosen
}

// drawing is what one victim draws from a budget.
type drawing struct {
	uid     types.UID
	name    string
	counted bool      // the API's status counts it, or never will
	gone    time.Time // when the pod went, zero while it is there
}

// draw has a new victim draw down the budgets that select it, and returns them.
func (b budgets) draw(s *cluster.State, pod *cluster.Pod) (from []budgetKey) {
	for _, x := range slices.Clone(s.Budgets(pod.Object.Namespace)) {
		if !x.Selects(pod) {
			continue
		}
		key := keyOf(x.PodDisruptionBudget)
		d := b[key]
		if d == nil {
			d = &drawnBudget{shown: x.PodDisruptionBudget}
			b[key] = d
		}
		d.victims = append(d.victims, drawing{uid: pod.UID, name: pod.Object.Name, counted: !s.Ready(pod.UID)})
		s.SetObject(d.drawnDown())
		from = append(from, key)
	}
	return from
}

// giveBack has a pod that stays draw nothing any more.
func (b budgets) giveBack(s *cluster.State, from []budgetKey, victim types.UID) {
	for _, key := range from {
		b.remove(s, key, func(x *drawing) bool { return x.uid == victim })
	}
}

// gone records that a victim is gone: it draws only from budgets whose status doesn't count it yet.
func (b budgets) gone(s *cluster.State, now time.Time, from []budgetKey, victim types.UID) {
	for _, key := range from {
		b.remove(s, key, func(x *drawing) bool {
			if x.uid == victim {
				x.gone = now
			}
			return x.uid == victim && x.counted
		})
	}
}

// expire has victims that have been gone for countedWithin draw nothing any more.
func (b budgets) expire(s *cluster.State, now time.Time) {
	if due := b.due(); due.IsZero() || now.Before(due) {
		return
	}
	keys := slices.SortedFunc(maps.Keys(b), func(x, y budgetKey) int {
		return cmp.Or(strings.Compare(x.namespace, y.namespace), strings.Compare(x.name, y.name))
	})
	for _, key := range keys {
		b.remove(s, key, func(x *drawing) bool { return !x.gone.IsZero() && now.Sub(x.gone) >= countedWithin })
	}
}

// due returns when the first victim that is gone draws nothing any more, zero for never.
func (b budgets) due() (next time.Time) {
	for _, d := range b { // in any order
		for i := range d.victims {
			if x := &d.victims[i]; !x.gone.IsZero() {
				next = lifecycle.Earliest(next, x.gone.Add(countedWithin))
			}
		}
	}
	return next
}

// remove removes victims from a budget, which may be gone.
func (b budgets) remove(s *cluster.State, key budgetKey, is func(*drawing) bool) {
	d := b[key]
	if d == nil {
		return
	}
	kept := d.victims[:0]
	for i := range d.victims {
		if x := d.victims[i]; !is(&x) {
			kept = append(kept, x)
		}
	}
	if d.victims = kept; len(kept) == 0 {
		delete(b, key)
	}
	s.SetObject(d.drawnDown())
}

// show takes how the API has a budget, and returns it drawn down.
func (b budgets) show(x *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	d := b[keyOf(x)]
	switch {
	case d == nil:
		return x
	case d.shown.UID != x.UID: // another one of that name
		delete(b, keyOf(x))
		return x
	}
	fallen := d.shown.Status.CurrentHealthy - x.Status.CurrentHealthy
	for i := range d.victims {
		v := &d.victims[i]
		if _, evicted := x.Status.DisruptedPods[v.name]; evicted {
			v.counted = true
		} else if fallen > 0 && !v.counted {
			v.counted = true
			fallen--
		}
	}
	d.victims = slices.DeleteFunc(d.victims, func(v drawing) bool { return v.counted && !v.gone.IsZero() })
	if d.shown = x; len(d.victims) == 0 {
		delete(b, keyOf(x))
	}
	return d.drawnDown()
}

// drawnDown returns the budget less what its victims draw.
func (d *drawnBudget) drawnDown() *policyv1.PodDisruptionBudget {
	if len(d.victims) == 0 {
		return d.shown
	}
	out := *d.shown
	out.Status.DisruptedPods = maps.Clone(out.Status.DisruptedPods)
	if out.Status.DisruptedPods == nil {
		out.Status.DisruptedPods = map[string]metav1.Time{}
	}
	for _, v := range d.victims {
		if !v.counted {
			out.Status.DisruptionsAllowed = max(0, out.Status.DisruptionsAllowed-1)
		}
		if _, ok := out.Status.DisruptedPods[v.name]; !ok && v.gone.IsZero() { // its successor may have the name
			out.Status.DisruptedPods[v.name] = metav1.Time{}
		}
	}
	return &out
}

// BudgetShown takes how the API has a disruption budget, and returns it as the state is to have
// it: less what victims on their way out draw from it.
func (m *Machine) BudgetShown(b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	return m.budgets.show(b)
}

// BudgetGone records that the API has a disruption budget no more.
func (m *Machine) BudgetGone(namespace, name string) { delete(m.budgets, budgetKey{namespace, name}) }

// invariants says what doesn't hold: each budget is drawn down by victims that know it, or by
// such that are gone.
func (b budgets) invariants(victims map[types.UID]*victim) (out []string) {
	for key, d := range b {
		if len(d.victims) == 0 {
			out = append(out, fmt.Sprintf("budget %s/%s is drawn down by nobody", key.namespace, key.name))
		}
		for _, x := range d.victims {
			if !x.gone.IsZero() {
				continue
			}
			if v := victims[x.uid]; v == nil || !slices.Contains(v.draws, key) {
				out = append(out, fmt.Sprintf("budget %s/%s is drawn down by pod %s, which isn't on its way out", key.namespace, key.name, x.uid))
			}
		}
	}
	slices.Sort(out)
	return out
}
