package podgroups

// This file has conditions of pod groups written: PodGroupInitiallyScheduled, whether enough members were
// given nodes for the first time, and why not yet; and DisruptionTarget, that all members have to leave
// their nodes for others of a higher priority.
//
//	condition    event                                                 then
//	-            the group is decided on, held for an error, or a      written
//	             victim as a whole
//	- or False   enough members are shown on nodes                     written: True
//	False        it is decided on again, and that differs              written
//	True         anything                                              stays
//
// A write that fails is repeated after retryAfter, unless the API shows by then that it was carried out.
// While a write is under way or waits to be repeated, what is said last waits for it.

import (
	"fmt"
	"maps"
	"slices"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/core/step"
)

// said is what was said of a pod group.
type said struct {
	key cluster.PodGroupKey
	// last is what was said last of each type of condition, and not refused.
	last map[string]metav1.Condition
	owed *metav1.Condition  // being written; nil for none
	next []metav1.Condition // to be written after that, one of each type
	// failed says that the last write failed: next is written after retryAfter.
	failed bool
}

// retryAfter is how long after a write failed those that failed since are repeated.
const retryAfter = 5 * time.Second

var _ lifecycle.Machine = (*Machine)(nil)

// failed says that a group can't be tried for an error.
func (m *Machine) failed(t *lifecycle.Turn, key cluster.PodGroupKey, why string) {
	if g := t.State.PodGroup(key); g != nil {
		m.tell(t, g, metav1.Condition{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionFalse, Reason: schedulingv1beta1.PodGroupReasonSchedulerError, Message: why})
	}
}

// decided says what was decided about a group.
func (m *Machine) decided(t *lifecycle.Turn, g *schedulingv1beta1.PodGroup, d *scheduler.GroupDecision) {
	c := placedCondition()
	if len(d.Places) == 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, schedulingv1beta1.PodGroupReasonUnschedulable, d.Message
	}
	m.tell(t, g, c)
}

// placedCondition returns the condition of a group of which enough members have nodes.
func placedCondition() metav1.Condition {
	return metav1.Condition{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionTrue, Reason: "Scheduled"}
}

// Disrupted says that a group's members leave their nodes for others of a higher priority. It implements
// preemption.Groups.
func (m *Machine) Disrupted(t *lifecycle.Turn, key cluster.PodGroupKey, message string) {
	if g := t.State.PodGroup(key); g != nil {
		m.tell(t, g, metav1.Condition{Type: schedulingv1beta1.DisruptionTarget, Status: metav1.ConditionTrue, Reason: schedulingv1beta1.PodGroupReasonPreemptionByScheduler, Message: message})
	}
}

// tell hands out the write of a condition, unless that is what the object says, or the last write.
func (m *Machine) tell(t *lifecycle.Turn, g *schedulingv1beta1.PodGroup, c metav1.Condition) {
	if !m.members.Decides() {
		return
	}
	c.ObservedGeneration, c.LastTransitionTime = g.Generation, metav1.NewTime(t.Now.Truncate(time.Second))
	x := m.said[g.UID]
	if x == nil {
		x = &said{key: cluster.PodGroupKey{Namespace: g.Namespace, Name: g.Name}, last: map[string]metav1.Condition{}}
		for _, shown := range g.Status.Conditions {
			x.last[shown.Type] = shown
		}
	}
	last := x.last[c.Type]
	if last.Status == metav1.ConditionTrue || same(last, c) {
		return
	}
	if last.Status == c.Status {
		c.LastTransitionTime = last.LastTransitionTime
	}
	x.last[c.Type] = c
	m.said[g.UID] = x
	x.next = append(slices.DeleteFunc(x.next, func(o metav1.Condition) bool { return o.Type == c.Type }), c)
	if x.owed == nil && !x.failed {
		m.write(t, g.UID, x)
	}
}

// same reports whether two conditions say the same.
func same(a, b metav1.Condition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// write writes the condition that waits for it first.
func (m *Machine) write(t *lifecycle.Turn, uid types.UID, x *said) {
	c := x.next[0]
	x.owed, x.next = &c, x.next[1:]
	t.Ready.StatusWrites = append(t.Ready.StatusWrites, step.StatusWrite{UID: uid, Namespace: x.key.Namespace, Name: x.key.Name, PodGroup: &c})
}

// StatusWritten takes the outcome of a write. One of another object is passed over.
func (m *Machine) StatusWritten(t *lifecycle.Turn, in step.StatusWritten) {
	x := m.said[in.UID]
	if x == nil || x.owed == nil {
		return
	}
	c := *x.owed
	x.owed = nil
	switch {
	case in.Err != nil:
		if !slices.ContainsFunc(x.next, func(o metav1.Condition) bool { return o.Type == c.Type }) {
			x.next = append(x.next, c)
		}
		if x.failed = true; len(m.unwritten) == 0 {
			m.unwrittenSince = t.Now
		}
		m.unwritten = append(m.unwritten, in.UID)
	case len(x.next) > 0:
		m.write(t, in.UID, x)
	}
}

// repeatWrites repeats the writes that have failed, once it is time.
func (m *Machine) repeatWrites(t *lifecycle.Turn) {
	if len(m.unwritten) == 0 || t.Now.Before(m.unwrittenSince.Add(retryAfter)) {
		return
	}
	for _, uid := range m.unwritten {
		x := m.said[uid]
		if x == nil || !x.failed {
			continue
		}
		x.failed = false
		g := t.State.PodGroup(x.key)
		if g == nil || g.UID != uid {
			delete(m.said, uid)
			continue
		}
		x.next = slices.DeleteFunc(x.next, func(c metav1.Condition) bool { return shows(g, c) })
		if len(x.next) > 0 {
			m.write(t, uid, x)
		}
	}
	m.unwritten = nil
}

// shows reports whether a group's object makes a condition needless: it has it, or it is True, which stays.
func shows(g *schedulingv1beta1.PodGroup, c metav1.Condition) bool {
	shown := meta.FindStatusCondition(g.Status.Conditions, c.Type)
	return shown != nil && (shown.Status == metav1.ConditionTrue || same(*shown, c))
}

// ObjectGone forgets what was said of a group that is gone.
func (m *Machine) ObjectGone(namespace, name string) {
	maps.DeleteFunc(m.said, func(_ types.UID, x *said) bool {
		return x.key == cluster.PodGroupKey{Namespace: namespace, Name: name}
	})
}

// Unsettled names the groups of which a write is under way, or waits to be repeated.
func (m *Machine) Unsettled() (out []string) {
	for _, uid := range slices.Sorted(maps.Keys(m.said)) {
		if x := m.said[uid]; x.owed != nil || x.failed {
			out = append(out, fmt.Sprintf("the condition of pod group %s is being written", x.key))
		}
	}
	return out
}

// Invariants says what doesn't hold: only a write that is under way, or is to be repeated, is waited for.
func (m *Machine) Invariants() (out []string) {
	for _, uid := range slices.Sorted(maps.Keys(m.said)) {
		if x := m.said[uid]; len(x.next) > 0 && x.owed == nil && !x.failed {
			out = append(out, fmt.Sprintf("a condition of pod group %s waits for a write, and none is under way", x.key))
		}
	}
	return out
}
