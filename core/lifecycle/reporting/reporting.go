package reporting

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/step"
)

// Pod is a pod's part of the machine: what was last said of it.
type Pod struct {
	condition string    // message of its last PodScheduled=False condition
	scaleUp   string    // message of its last event about a scale-up
	since     time.Time // when a condition PodScheduled=False was first written; zero for never
	refreshes refreshes // of condition
}

// Condition returns the message of the pod's last PodScheduled=False condition, "" for
// none.
func (p *Pod) Condition() string { return p.condition }

// ScaleUp returns the message of the pod's last event about a scale-up, "" for none.
func (p *Pod) ScaleUp() string { return p.scaleUp }

// Scheduler is what reporting needs of the scheduler.
type Scheduler interface {
	// Refreshed returns a diagnosis that says about the cluster as it is now what d, whose
	// reasons still hold, said of it before; in O(nodes).
	Refreshed(class *engine.Class, d *engine.Diagnosis) *engine.Diagnosis
}

// Machine says what there is to say. Only the core's goroutine may call it.
type Machine struct {
	pods     lifecycle.Pods[Pod]
	messages messages
	problems problems
}

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine that has said nothing. When messages of waiting classes are
// refreshed, they are written for at most podsPerClass pods of each class, since each is
// a call to the API: RefreshedPods for a core that writes conditions, 0 for one that
// leaves them to another scheduler.
func New(scheduler Scheduler, pods lifecycle.Pods[Pod], podsPerClass int) *Machine {
	return &Machine{pods: pods, messages: messages{scheduler: scheduler, podsPerClass: podsPerClass}, problems: newProblems()}
}

// schedulerError is kube-scheduler's reason of the condition of a pod that an error keeps from its node.
const schedulerError = "SchedulerError"

// PodUnschedulable reports that a pod found no node, with an event; for the reason
// SchedulerError that an error kept it from its node.
func (m *Machine) PodUnschedulable(t *lifecycle.Turn, p *Pod, obj *v1.Pod, reason, message string) {
	if p.condition == message {
		return
	}
	c := p.say(t, obj, reason, message)
	if reason == v1.PodReasonUnschedulable {
		e := step.SchedulingEvent(obj.Spec.SchedulerName, obj, "FailedScheduling", "Scheduling", message).AsWarning()
		c.Event = &e
	}
	p.refreshes.tried(t.Now)
}

// PodFailed reports that an error ended the attempt to place a pod, once for the same error.
func (m *Machine) PodFailed(t *lifecycle.Turn, p *Pod, obj *v1.Pod, message string) {
	if p.condition == message {
		return
	}
	c := p.say(t, obj, schedulerError, message)
	e := step.SchedulingEvent(obj.Spec.SchedulerName, obj, "FailedScheduling", "Scheduling", message).AsWarning()
	c.Event = &e
	p.refreshes.tried(t.Now)
}

// say hands out the write of a pod's condition, and returns it so that the caller can add an event.
func (p *Pod) say(t *lifecycle.Turn, obj *v1.Pod, reason, message string) *step.Condition {
	if p.since.IsZero() {
		p.since = t.Now
	}
	p.condition = message
	t.Ready.Conditions = append(t.Ready.Conditions, step.Condition{UID: obj.UID, Namespace: obj.Namespace, Name: obj.Name,
		Since: sinceShown(obj, p.since), Generation: obj.Generation, Reason: reason, Message: message})
	return &t.Ready.Conditions[len(t.Ready.Conditions)-1]
}

// sinceShown returns since when the API shows a pod as not scheduled; first when it doesn't:
// the transition time of a condition moves only with its status.
func sinceShown(obj *v1.Pod, first time.Time) time.Time {
	for _, c := range obj.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time
		}
	}
	return first
}

// PodGated reports that a plugin keeps a pod out of the queue. As in kube-scheduler, a pod has a
// condition for scheduling gates only. Of the pods that are created with them the API server has said so.
func (m *Machine) PodGated(t *lifecycle.Turn, p *Pod, obj *v1.Pod, gate *framework.Reason) {
	message := gate.Messages[0]
	if gate.Plugin == framework.SchedulingGates {
		message = "Scheduling is blocked due to non-empty scheduling gates: " + message
		if !saysGated(obj) {
			m.PodHeld(t, p, obj, v1.PodReasonSchedulingGated, message)
			return
		}
	}
	p.noteGated(t, obj, message)
	p.condition = message
}

// PodHeld reports that a pod is kept out of the queue, for what a condition has as its reason and
// message.
func (m *Machine) PodHeld(t *lifecycle.Turn, p *Pod, obj *v1.Pod, reason, message string) {
	p.noteGated(t, obj, message)
	if reason == schedulerError {
		m.PodFailed(t, p, obj, message)
		return
	}
	m.PodUnschedulable(t, p, obj, reason, message)
}

// noteGated enters into the ledger that a pod is kept out of the queue, once for the same message.
func (p *Pod) noteGated(t *lifecycle.Turn, obj *v1.Pod, message string) {
	if p.condition != message {
		t.Decide(step.Decision{Kind: step.Gated, Pod: obj.Namespace + "/" + obj.Name, Reason: message})
	}
}

// saysGated reports whether a pod's condition says that it has scheduling gates.
func saysGated(obj *v1.Pod) bool {
	return slices.ContainsFunc(obj.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse && c.Reason == v1.PodReasonSchedulingGated
	})
}

// TriggeredScaleUp reports that nodes were ordered for a pod; growth names the group
// and how many.
func (m *Machine) TriggeredScaleUp(t *lifecycle.Turn, p *Pod, obj *v1.Pod, growth string) {
	message := "pod triggered scale-up: [{" + growth + "}]"
	if p.scaleUp != message {
		p.scaleUp = message
		t.Emit(step.PodEvent(obj, "TriggeredScaleUp", "ScalingUp", message))
	}
}

// ScaleUpOutdated says that what was last said of a scale-up for a pod holds no more, though
// there is nothing new to say: nodes would help it, and fewer are ordered than were proposed.
func (m *Machine) ScaleUpOutdated(p *Pod) { p.scaleUp = "" }

// NotTriggeredScaleUp reports why no node group would help a pod, and enters it into the
// ledger.
func (m *Machine) NotTriggeredScaleUp(t *lifecycle.Turn, p *Pod, obj *v1.Pod, why string) {
	if !p.SaysNoHelp(why) {
		message := noHelp + why
		p.scaleUp = message
		t.Decide(step.Decision{Kind: step.NotScaledUp, Pod: obj.Namespace + "/" + obj.Name, Reason: why})
		t.Emit(step.PodEvent(obj, "NotTriggerScaleUp", "ScalingUp", message))
	}
}

// noHelp begins the message of NotTriggerScaleUp.
const noHelp = "pod didn't trigger scale-up: "

// SaysNoHelp reports whether the pod's last event about a scale-up is that no group would help
// it, for these reasons.
func (p *Pod) SaysNoHelp(why string) bool {
	said, ok := strings.CutPrefix(p.scaleUp, noHelp)
	return ok && said == why
}

// Advance refreshes the messages of some waiting classes when that is due.
func (m *Machine) Advance(t *lifecycle.Turn) {
	m.messages.advance(t, func(class *engine.Class, message string, maxPods int) (putOff time.Time) {
		return m.refreshPods(t, class, message, maxPods)
	})
}

// TellClass gives all pods that wait with a class, and aren't nominated, the message of
// one that was tried.
func (m *Machine) TellClass(t *lifecycle.Turn, class *engine.Class, message string) {
	m.messages.again(m.refreshPods(t, class, message, len(t.Queue.Unnominated(class))))
}

// refreshPods gives at most maxPods of a class's waiting pods a message, and returns when the
// first of those is due that it has put off.
func (m *Machine) refreshPods(t *lifecycle.Turn, class *engine.Class, message string, maxPods int) (putOff time.Time) {
	items := t.Queue.Unnominated(class)
	for _, item := range items[:min(len(items), maxPods)] {
		if p := m.saysMessageOf(item); p != nil && p.condition != message {
			putOff = lifecycle.Earliest(putOff, p.refresh(t, item.Pod().Object, message))
		}
	}
	return putOff
}

// saysMessageOf returns the part of a waiting pod that says what its class says, nil of a
// stand-in, of which nothing is said.
func (m *Machine) saysMessageOf(item *queue.Item) *Pod {
	if item.Pod().StandsIn() {
		return nil
	}
	return m.pods.Get(item.Pod().UID)
}

// NextWake returns when messages are to be refreshed, zero for never.
func (m *Machine) NextWake() time.Time { return m.messages.nextWake() }

// Unsettled says how many classes have messages that are being refreshed.
func (m *Machine) Unsettled() (out []string) {
	if n := len(m.messages.left); n > 0 {
		out = append(out, fmt.Sprintf("the messages of %d waiting classes are to be refreshed", n))
	}
	return out
}

// Invariants says what doesn't hold of the machine's own fields: a refresh that is under
// way has begun, and nothing empty was said.
func (m *Machine) Invariants() (out []string) {
	if len(m.messages.left) > 0 && m.messages.since.IsZero() {
		out = append(out, "messages are being refreshed, and nothing says since when")
	}
	for uid, text := range m.problems.pods {
		if text == "" {
			out = append(out, fmt.Sprintf("problems of pod %s were reported, and there are none", uid))
		}
	}
	return out
}

// InvariantsIn says what doesn't hold between the machine and the state: what is
// remembered as said of a pod's values ends with the pod.
func (m *Machine) InvariantsIn(state *cluster.State) (out []string) {
	for _, uid := range slices.Sorted(maps.Keys(m.problems.pods)) {
		if _, placed := state.Placed(uid); !placed && m.pods.Get(uid) == nil {
			out = append(out, fmt.Sprintf("problems of pod %s are remembered, which is gone", uid))
		}
	}
	return out
}
