package step

// This file lists the reasons of all events, for the reference. A test finds those of the code
// and compares.

// EventReason is one kind of event.
type EventReason struct {
	About   string // what the event is about
	Reason  string
	Warning bool // its type, else Normal
	Meaning string
}

// What events are about.
const (
	aboutPod        = "pod"
	aboutNode       = "node"
	aboutStatus     = "status ConfigMap"
	aboutPriorities = "priorities ConfigMap"
)

// EventReasons returns all kinds of events, by what they are about. Where kube-scheduler or
// Cluster Autoscaler has one, the reason is its own.
func EventReasons() []EventReason {
	return []EventReason{
		{aboutPod, scheduled, false, "it was bound to a node"},
		{aboutPod, "FailedScheduling", true, "it was tried and no node takes it, with the reasons; or its binding failed"},
		{aboutPod, "Preempted", false, "it was asked to leave its node for another pod"},
		{aboutPod, "TriggeredScaleUp", false, "a node was ordered for it"},
		{aboutPod, "NotTriggerScaleUp", false, "no node group would help it, with the reasons of the groups"},
		{aboutPod, "ScaleDown", false, "it is asked to leave a node that goes, or its successor is made before it is"},
		{aboutPod, "ScaleDownFailed", true, "it could not be evicted"},
		{aboutPod, "InvalidQuantity", true, "values of it can't be taken as they stand"},

		{aboutNode, "ScaleDown", false, "it was marked for removal, or the provider was asked to delete it"},
		{aboutNode, "ScaleDownFailed", true, "its removal was given up, and it stays"},
		{aboutNode, "ScaleDownCancelled", false, "its removal had begun and nobody had left it for that; a pod has come that would need a new node else, and it stays"},
		{aboutNode, "InvalidQuantity", true, "values of it can't be taken as they stand"},

		{aboutStatus, "ScaledUpGroup", false, "nodes of a group are ordered; and the provider has taken the order"},
		{aboutStatus, "FailedToScaleUpGroup", true, "the provider has refused an order"},
		{aboutStatus, "ScaleUpFailed", true, "instances of a group will not become nodes, by the provider's word"},
		{aboutStatus, "ScaleUpTimedOut", true, "nodes of a group weren't there in time"},
		{aboutStatus, "MaxNodesTotalReached", true, "pods wait for nodes, and the cluster has begun to have as many as it may"},
		{aboutStatus, "ClusterUnhealthy", true, "too many nodes have begun not to be ready for the cluster's size to be changed"},
		{aboutStatus, "ScaleDownEmpty", false, "the removal of an empty node begins; and it is gone"},
		{aboutStatus, "ScaleDown", false, "the removal of a node with pods begins; and it is gone"},
		{aboutStatus, "DeleteUnregistered", false, "an instance was deleted that hadn't become a node in time"},
		{aboutStatus, "DeleteUnregisteredFailed", true, "such an instance could not be deleted"},

		{aboutPriorities, "PriorityConfigMapInvalid", true, "it can't be read; the last priorities that could be hold on"},
		{aboutPriorities, "PriorityConfigMapNotMatchedGroup", true, "no pattern of it matches a node group that could grow"},
		{aboutPriorities, "PriorityConfigMapNoGroupMatched", true, "no pattern of it matches any of them; all are left"},
	}
}

// scheduled is the reason of the event that says to which node a pod was bound.
const scheduled = "Scheduled"

// HappensOnce tells whether the event can't happen to its object again: a pod is bound once.
func (e *Event) HappensOnce() bool { return e.Reason == scheduled }
