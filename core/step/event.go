package step

import (
	"cmp"

	v1 "k8s.io/api/core/v1"
)

// Reporting controllers of events that aren't a scheduler's.
const (
	// Autoscaler is Cluster Autoscaler's: people and programs select its events by it.
	Autoscaler = "cluster-autoscaler"
	// Berth is the one of events that neither kube-scheduler nor Cluster Autoscaler has.
	Berth = "berth"
)

// SchedulingEvent returns an event of type Normal about a pod, reported by the scheduler of a
// schedulerName: that of the pod or, when it leaves its node for another pod, of that one.
func SchedulingEvent(scheduler string, obj *v1.Pod, reason, action, message string) Event {
	return PodEvent(obj, reason, action, message).From(cmp.Or(scheduler, v1.DefaultSchedulerName))
}

// PodEvent returns an event of type Normal about a pod, reported by the autoscaler.
func PodEvent(obj *v1.Pod, reason, action, message string) Event {
	return Event{Reporter: Autoscaler, Kind: "Pod", UID: obj.UID, Namespace: obj.Namespace, Name: obj.Name, Reason: reason, Action: action, Message: message}
}

// NodeEvent returns an event of type Normal about a node, reported by the autoscaler.
func NodeEvent(obj *v1.Node, reason, action, message string) Event {
	return Event{Reporter: Autoscaler, Kind: "Node", UID: obj.UID, Name: obj.Name, Reason: reason, Action: action, Message: message}
}

// StatusEvent returns an event of type Normal about the autoscaler as a whole, which reports it. It is one of the
// status ConfigMap, which the core doesn't know by name: the edge does. related is the node
// group or the node that it speaks of.
func StatusEvent(related, reason, action, message string) Event {
	return Event{Reporter: Autoscaler, Kind: "ConfigMap", Related: related, Reason: reason, Action: action, Message: message}
}

// AboutStatus reports whether an event is one of the status ConfigMap.
func (e *Event) AboutStatus() bool { return e.Kind == "ConfigMap" && e.Name == "" }

// From returns the same event as reported by another controller.
func (e Event) From(reporter string) Event {
	e.Reporter = reporter
	return e
}

// AsWarning returns the same event as one of type Warning.
func (e Event) AsWarning() Event {
	e.Warning = true
	return e
}
