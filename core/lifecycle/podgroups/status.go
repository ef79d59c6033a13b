package podgroups

// This file has conditions of pod groups written: PodGroupInitiallyScheduled, whether enough members were
// given nodes for the first time, and why not yet; and DisruptionTarget, that all members have to leave
// their nodes for others of a higher priority.
//
//	condition    event                                                 then
//	-            the group is decided on, held for an error, or a      written
//	             victim as a whole
//	False        it is decided on again, and that differs              written
//	True         anything                                              stays
//
// A write that fails is forgotten: what is said next is written again. While one is under way, what is
// said last waits for it.

import (
	"fmt"
	"maps"
	"slices"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
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
	owed bool               // the outcome of a write
	next []metav1.Condition // to be written after that, one of each type
}

var _ lifecycle.Machine = (*Machine)(nil)

// failed says that a group can't be tried for an error.
func (m *Machine) failed(t *lifecycle.Turn, key cluster.PodGroupKey, why string) {
	if g := t.State.PodGroup(key); g != nil {
		m.tell(t, g, metav1.Condition{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionFalse, Reason: schedulingv1beta1.PodGroupReasonSchedulerError, Message: why})
	}
}

// decided says what was decided about a group.
func (m *Machine) decided(t *lifecycle.Turn, g *schedulingv1beta1.PodGroup, d *scheduler.GroupDecision) {
	c := metav1.Condition{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionTrue, Reason: "Scheduled"}
	if len(d.Places) == 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, schedulingv1beta1.PodGroupReasonUnschedulable, d.Message
	}
	m.tell(t, g, c)
}

// Disrupted says that a group's members leave their nodes for others of a higher priority. It implements
// preemption.Groups.
func (m *Machine) Disrupted(t *lifecycle.Turn, key cluster.PodGroupKey, message string) {
	if g := t.State.PodGroup(key); g != nil {
		m.tell(t, g, metav1.Condition{Type: schedulingv1beta1.DisruptionTarget, Status: metav1.ConditionTrue, Reason: schedulingv1beta1.PodGroupReasonPreemptionByScheduler, Message: message})
	}
}

// tell has a condition written, unless that is what the object says, or the last write.
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
	if !x.owed {
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
	x.owed, x.next = true, x.next[1:]
	t.Ready.StatusWrites = append(t.Ready.StatusWrites, step.StatusWrite{UID: uid, Namespace: x.key.Namespace, Name: x.key.Name, PodGroup: &c})
}

// StatusWritten takes the outcome of a write. One of another object is passed over.
func (m *Machine) StatusWritten(t *lifecycle.Turn, in step.StatusWritten) {
	x := m.said[in.UID]
	if x == nil || !x.owed {
		return
	}
	x.owed = false
	switch {
	case len(x.next) > 0:
		m.write(t, in.UID, x)
	case in.Err != nil:
		delete(m.said, in.UID)
	}
}

// ObjectGone forgets what was said of a group that is gone.
func (m *Machine) ObjectGone(namespace, name string) {
	maps.DeleteFunc(m.said, func(_ types.UID, x *said) bool {
		return x.key == cluster.PodGroupKey{Namespace: namespace, Name: name}
	})
}

// Advance does nothing: whatever is to be written is written when it is said.
func (m *Machine) Advance(*lifecycle.Turn) {}

// NextWake returns zero.
func (m *Machine) NextWake() time.Time { return time.Time{} }

// Unsettled names the groups of which a write is under way.
func (m *Machine) Unsettled() (out []string) {
	for _, uid := range slices.Sorted(maps.Keys(m.said)) {
		if x := m.said[uid]; x.owed {
			out = append(out, fmt.Sprintf("the condition of pod group %s is being written", x.key))
		}
	}
	return out
}

// Invariants says what doesn't hold: only a write that is under way is waited for.
func (m *Machine) Invariants() (out []string) {
	for _, uid := range slices.Sorted(maps.Keys(m.said)) {
		if x := m.said[uid]; len(x.next) > 0 && !x.owed {
			out = append(out, fmt.Sprintf("a condition of pod group %s waits for a write, and none is under way", x.key))
		}
	}
	return out
}
