package podgroups

// This file has the condition PodGroupInitiallyScheduled of pod groups written: whether enough members
// were given nodes for the first time, and why not yet.
//
//	condition    event                                                 then
//	-            the group is decided on, or held for an error         written
//	False        it is decided on again, and that differs              written
//	True         anything                                              stays: the group was scheduled
//
// A write that fails is forgotten: what is said next is written again. While one is under way, what is
// said last waits for it.

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
	key  cluster.PodGroupKey
	last metav1.Condition  // last, and not refused; Status "" for nothing
	owed bool              // the outcome of a write
	next *metav1.Condition // to be written after that; nil for nothing
}

var _ lifecycle.Machine = (*Machine)(nil)

// failed says that a group can't be tried for an error.
func (m *Machine) failed(t *lifecycle.Turn, key cluster.PodGroupKey, why string) {
	if g := t.State.PodGroup(key); g != nil {
		m.tell(t, g, metav1.Condition{Status: metav1.ConditionFalse, Reason: schedulingv1beta1.PodGroupReasonSchedulerError, Message: why})
	}
}

// decided says what was decided about a group.
func (m *Machine) decided(t *lifecycle.Turn, g *schedulingv1beta1.PodGroup, d *scheduler.GroupDecision) {
	c := metav1.Condition{Status: metav1.ConditionTrue, Reason: "Scheduled"}
	if len(d.Places) == 0 {
		c = metav1.Condition{Status: metav1.ConditionFalse, Reason: schedulingv1beta1.PodGroupReasonUnschedulable, Message: d.Message}
	}
	m.tell(t, g, c)
}

// tell has a condition written, unless that is what the object says, or the last write.
func (m *Machine) tell(t *lifecycle.Turn, g *schedulingv1beta1.PodGroup, c metav1.Condition) {
	if !m.members.Decides() {
		return
	}
	c.Type, c.ObservedGeneration = schedulingv1beta1.PodGroupInitiallyScheduled, g.Generation
	c.LastTransitionTime = metav1.NewTime(t.Now.Truncate(time.Second))
	x := m.said[g.UID]
	if x == nil {
		x = &said{key: cluster.PodGroupKey{Namespace: g.Namespace, Name: g.Name}}
		if shown := meta.FindStatusCondition(g.Status.Conditions, c.Type); shown != nil {
			x.last = *shown
		}
	}
	if x.last.Status == metav1.ConditionTrue || same(x.last, c) {
		return
	}
	if x.last.Status == c.Status {
		c.LastTransitionTime = x.last.LastTransitionTime
	}
	x.last = c
	m.said[g.UID] = x
	if x.owed {
		x.next = &c
		return
	}
	m.write(t, g.UID, x, c)
}

// same reports whether two conditions say the same.
func same(a, b metav1.Condition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

func (m *Machine) write(t *lifecycle.Turn, uid types.UID, x *said, c metav1.Condition) {
	x.owed, x.next = true, nil
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
	case x.next != nil:
		m.write(t, in.UID, x, *x.next)
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
		if x := m.said[uid]; x.next != nil && !x.owed {
			out = append(out, fmt.Sprintf("a condition of pod group %s waits for a write, and none is under way", x.key))
		}
	}
	return out
}
