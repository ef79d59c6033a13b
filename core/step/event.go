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

// AsWarning returns the same event as one of type Warning.
func (e Event) AsWarning() Event {
	e.Warning = true
	return e
}
