package step

import v1 "k8s.io/api/core/v1"

// PodEvent returns an event of type Normal about a pod.
func PodEvent(obj *v1.Pod, reason, action, message string) Event {
	return Event{Kind: "Pod", UID: obj.UID, Namespace: obj.Namespace, Name: obj.Name, Reason: reason, Action: action, Message: message}
}

// NodeEvent returns an event of type Normal about a node.
func NodeEvent(obj *v1.Node, reason, action, message string) Event {
	return Event{Kind: "Node", UID: obj.UID, Name: obj.Name, Reason: reason, Action: action, Message: message}
}

// StatusEvent returns an event of type Normal about the autoscaler as a whole. It is one of the
// status ConfigMap, which the core doesn't know by name: the edge does. related is the node
// group or the node that it speaks of.
func StatusEvent(related, reason, action, message string) Event {
	return Event{Kind: "ConfigMap", Related: related, Reason: reason, Action: action, Message: message}
}

// AboutStatus reports whether an event is one of the status ConfigMap.
func (e *Event) AboutStatus() bool { return e.Kind == "ConfigMap" && e.Name == "" }

// AsWarning returns the same event as one of type Warning.
func (e Event) AsWarning() Event {
	e.Warning = true
	return e
}
