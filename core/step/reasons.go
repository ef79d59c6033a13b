package step

// This file lists the reasons of all events, for the reference. A test finds those of the code
// and compares.

// EventReason is one kind of event.
type EventReason struct {
	About string // what the event is about
	// Reason is unique among the events about the same kind of object.
	Reason  string
	Warning bool   // its type; Normal otherwise
	From    string // its reporting controller
	// Meaning completes a sentence about the object: "it was bound to a node".
	Meaning string
}

// What events are about.
const (
	aboutPod        = "pod"
	aboutNode       = "node"
	aboutStatus     = "status ConfigMap"
	aboutPriorities = "priorities ConfigMap"
)

// Whom events are from.
const (
	fromScheduler  = "the schedulerName"
	fromAutoscaler = "`" + Autoscaler + "`"
	fromBerth      = "`" + Berth + "`"
)

// EventReasons returns all kinds of events, by what they are about. Where kube-scheduler or
// Cluster Autoscaler has one, the reason is its own.
func EventReasons() []EventReason {
	return []EventReason{
		{aboutPod, scheduled, false, fromScheduler, "it was bound to a node"},
		{aboutPod, "FailedScheduling", true, fromScheduler, "no node fits it, with the reasons; or its binding failed"},
		{aboutPod, "BindingConditionsPending", false, fromScheduler, "devices were allocated to it on a node, and their drivers have to make them ready before it is bound"},
		{aboutPod, "Preempted", false, fromScheduler, "it was preempted by a pod of higher priority"},
		{aboutPod, "TriggeredScaleUp", false, fromAutoscaler, "a scale-up was triggered for it"},
		{aboutPod, "NotTriggerScaleUp", false, fromAutoscaler, "no node group can help, with the reason of each group"},
		{aboutPod, "ScaleDown", false, fromAutoscaler, "it is evicted from a node that is being removed, or its replacement is surged first"},
		{aboutPod, "ScaleDownFailed", true, fromAutoscaler, "it could not be evicted"},
		{aboutPod, "ResizeWaitsForRoom", true, fromAutoscaler, "its node has no room for its in-place resize, or never will have"},
		{aboutPod, "ResizeMovesPod", false, fromAutoscaler, "it is evicted since its in-place resize waits, and another node has room for its replacement"},
		{aboutPod, "InvalidQuantity", true, fromBerth, "it has invalid values; the message says how Berth treats them"},

		{aboutNode, "ScaleDown", false, fromAutoscaler, "it was marked for removal, or the provider was asked to delete it"},
		{aboutNode, "ScaleDownFailed", true, fromAutoscaler, "its removal failed, and it stays"},
		{aboutNode, "ScaleDownCancelled", false, fromAutoscaler, "its removal was cancelled: a pending pod fits on it and would otherwise need a new node"},
		{aboutNode, "NodeInterrupted", true, fromAutoscaler, "the cloud is about to take it (--node-interruption-marks): room for its pods is being reserved or bought"},
		{aboutNode, "InvalidQuantity", true, fromBerth, "it has invalid values; the message says how Berth treats them"},

		{aboutStatus, "ScaledUpGroup", false, fromAutoscaler, "a node group is being scaled up; and was scaled up"},
		{aboutStatus, "FailedToScaleUpGroup", true, fromAutoscaler, "the provider refused a scale-up"},
		{aboutStatus, "ScaleUpFailed", true, fromAutoscaler, "the provider reports that instances of a node group failed to be created"},
		{aboutStatus, "ScaleUpTimedOut", true, fromAutoscaler, "nodes of a node group failed to register in time (`--max-node-provision-time`); or a node is ready and lacks what it was bought for, such as a CSI driver, after its start-up time (`--max-node-startup-time`)"},
		{aboutStatus, "TargetSizeTooLarge", true, fromAutoscaler, "the provider's target size of a node group is above its maximum and its nodes together; Berth doesn't change it"},
		{aboutStatus, "MaxNodesTotalReached", true, fromAutoscaler, "pods need nodes, and the cluster has reached its maximum number of nodes"},
		{aboutStatus, "ClusterUnhealthy", true, fromAutoscaler, "too many nodes are unready; the autoscaler stops resizing the cluster"},
		{aboutStatus, "ScaleDownEmpty", false, fromAutoscaler, "an empty node is being removed; and was removed"},
		{aboutStatus, "ScaleDown", false, fromAutoscaler, "a node is being drained and removed; and was removed"},
		{aboutStatus, "DeleteUnregistered", false, fromAutoscaler, "an instance that failed to register as a node in time was deleted"},
		{aboutStatus, "DeleteUnregisteredFailed", true, fromAutoscaler, "an instance that failed to register as a node in time could not be deleted"},

		{aboutPriorities, "PriorityConfigMapInvalid", true, fromAutoscaler, "it cannot be parsed; the last valid priorities stay in effect"},
		{aboutPriorities, "PriorityConfigMapNotMatchedGroup", true, fromAutoscaler, "a node group that could be scaled up matches none of its patterns"},
		{aboutPriorities, "PriorityConfigMapNoGroupMatched", true, fromAutoscaler, "none of the node groups that could be scaled up matches its patterns; no option is filtered out"},
	}
}

// scheduled is the reason of the event that says to which node a pod was bound.
const scheduled = "Scheduled"

// HappensOnce reports whether the event can't happen to its object again: a pod is bound once.
func (e *Event) HappensOnce() bool { return e.Reason == scheduled }
