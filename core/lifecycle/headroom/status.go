package headroom

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// This file follows what is written of the objects that ask for headroom. At most one write
// of an object is under way. What was decided here last is what the object's status is to
// be, whatever the API shows meanwhile: informers may be late.

const (
	// retryAfter is how long after a write failed it is tried again.
	retryAfter = 5 * time.Second
	// messageEvery is how long after a write another is made that changes no more than
	// messages.
	messageEvery = 10 * time.Second
)

// report is what is to be written of an object.
type report struct {
	silent     bool // the object is somebody else's
	decided    bool // something was decided about the object by this process
	conditions []metav1.Condition
	status     autoscalingapi.CapacityBufferStatus // of a buffer, but for its conditions
	buffer     *buffer                             // what the buffer asks for; nil when that can't be made out
	owed       bool                                // a write has no outcome yet
	unwritten  bool                                // something has changed since the last write
	after      time.Time                           // when that may be written at the earliest
	written    time.Time                           // when something was written last
}

// adopt takes what the API has of an object: all of it before anything was decided here,
// since another process decided then; after that, the conditions that Berth doesn't set.
func (r *report) adopt(o cluster.Object) {
	var conditions []metav1.Condition
	switch o := o.(type) {
	case *autoscalingapi.CapacityBuffer:
		if conditions = o.Status.Conditions; !r.decided {
			r.status = o.Status
			r.status.Conditions = nil
		}
	case *autoscalingapi.ProvisioningRequest:
		conditions = o.Status.Conditions
	}
	if !r.decided {
		r.conditions = slices.Clone(conditions)
		return
	}
	r.conditions = slices.DeleteFunc(slices.Clone(r.conditions), func(c metav1.Condition) bool { return !ours(c.Type) })
	for _, c := range conditions {
		if !ours(c.Type) {
			r.conditions = append(r.conditions, c)
		}
	}
}

// ours reports whether Berth sets conditions of a type.
func ours(kind string) bool {
	switch kind {
	case autoscalingapi.ReadyForProvisioning, autoscalingapi.Provisioning, autoscalingapi.Accepted, autoscalingapi.Provisioned,
		autoscalingapi.Failed, autoscalingapi.BookingExpired:
		return true
	}
	return false
}

// done takes the outcome of a write.
func (r *report) done(now time.Time, err error) {
	if r.owed = false; err != nil {
		r.unwritten, r.after = true, now.Add(retryAfter)
	}
}

// next returns when something may be written, zero for never or when a write is under way.
func (r *report) next() time.Time {
	if !r.unwritten || r.owed {
		return time.Time{}
	}
	return r.after
}

// is reports whether a condition is true.
func (r *report) is(kind string) bool { return meta.IsStatusConditionTrue(r.conditions, kind) }

// condition returns a condition, nil for none.
func (r *report) condition(kind string) *metav1.Condition {
	return meta.FindStatusCondition(r.conditions, kind)
}

// stamp sets a condition of a ProvisioningRequest. As in Cluster Autoscaler its time is that
// of the last attempt, whether or not anything else of it is new.
func (r *report) stamp(t *lifecycle.Turn, kind string, status metav1.ConditionStatus, reason, message string, generation int64) {
	c := metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: generation,
		LastTransitionTime: metav1.NewTime(t.Now.Truncate(time.Second))}
	r.conditions = slices.Clone(r.conditions)
	if old := meta.FindStatusCondition(r.conditions, kind); old != nil {
		*old = c
	} else {
		r.conditions = append(r.conditions, c)
	}
	r.unwritten, r.after, r.decided = true, t.Now, true
}

// tell has the status of an object written, if there is something new to say and it is time.
func (m *Machine) tell(t *lifecycle.Turn, a *ask) {
	r := &a.report
	if a.kind == cluster.BufferKind && !r.silent && a.stale {
		m.describe(t, a)
	}
	a.stale = false
	if !r.unwritten || r.owed || t.Now.Before(r.after) {
		return
	}
	w := step.StatusWrite{UID: a.uid, Namespace: a.namespace, Name: a.name}
	if a.kind == cluster.BufferKind {
		status := r.status
		status.Conditions = r.conditions
		w.Buffer = &status
	} else {
		w.Request = &autoscalingapi.ProvisioningRequestStatus{Conditions: r.conditions}
	}
	r.owed, r.unwritten, r.written = true, false, t.Now
	t.Ready.StatusWrites = append(t.Ready.StatusWrites, w)
}

// describe works out the status of a buffer as it stands.
func (m *Machine) describe(t *lifecycle.Turn, a *ask) {
	r := &a.report
	ready := metav1.Condition{Type: autoscalingapi.ReadyForProvisioning, Status: metav1.ConditionTrue, Reason: autoscalingapi.AttributesSetReason, Message: "ready"}
	kept := metav1.Condition{Type: autoscalingapi.Provisioning, Status: metav1.ConditionTrue, Reason: autoscalingapi.InjectedReason}
	strategy := autoscalingapi.ActiveCapacity
	status := autoscalingapi.CapacityBufferStatus{ProvisioningStrategy: &strategy}
	if b := r.buffer; b == nil {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, autoscalingapi.ErrorReason, a.problem
		kept.Status, kept.Reason, kept.Message = metav1.ConditionFalse, autoscalingapi.NotProvisionableReason, "CapacityBuffer is not ready for provisioning"
	} else {
		n := int32(b.chunks)
		status.Replicas = &n
		if b.template != nil {
			status.PodTemplateRef = &autoscalingapi.LocalObjectRef{Name: b.template.Name}
			status.PodTemplateGeneration = &b.template.Generation
		}
		if kept.Message = m.progress(a); n == 0 {
			kept.Status, kept.Reason, kept.Message = metav1.ConditionFalse, autoscalingapi.EmptyReason, "CapacityBuffer has zero replicas"
		}
	}
	conditions := slices.Clone(r.conditions)
	turned := !equality.Semantic.DeepEqual(status, r.status)
	for _, c := range []metav1.Condition{ready, kept} {
		old := meta.FindStatusCondition(conditions, c.Type)
		turned = turned || old == nil || old.Status != c.Status || old.Reason != c.Reason
		c.LastTransitionTime = metav1.NewTime(t.Now.Truncate(time.Second))
		meta.SetStatusCondition(&conditions, c)
	}
	switch {
	case turned:
		r.unwritten, r.after = true, t.Now
	case !equality.Semantic.DeepEqual(conditions, r.conditions):
		if !r.unwritten {
			r.unwritten, r.after = true, r.written.Add(messageEvery)
		}
	}
	r.status, r.conditions, r.decided = status, conditions, true
}

// progress says how many stand-ins have room.
func (m *Machine) progress(a *ask) string {
	all, held := m.counts(a)
	text := fmt.Sprintf("%d of %d chunks have room", held, all)
	if held < all && a.missing != "" {
		text += "; the others fit no node group: " + a.missing
	}
	return text
}
