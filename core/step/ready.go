package step

// This file holds the work that a Step asks for. "Owed" says which outcome has to come
// back for a piece of work, exactly once; until then the core counts the work as open.

import (
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/core/cluster"
)

// Ready is the work that a Step asks for. The fields may be worked on in any
// order and at the same time, except that work on one object keeps its order.
type Ready struct {
	// Consults are to be put to the extenders; each is owed a Consulted.
	Consults []Consult
	// Binds are to be posted; each is owed a BindDone.
	Binds []Bind
	// Cancels take back Binds that aren't posted yet. Nothing is owed; the Bind's outcome
	// reports whether it was posted.
	Cancels []Cancel
	// Deallocations are to be written; each is owed a DeallocationDone.
	Deallocations []Deallocation
	// Preemptions are to be posted; each is owed a PreemptionDone.
	Preemptions []Preemption
	// Nominations are to be written; each is owed a NominationDone, but for those
	// that a later one of the same pod replaces.
	Nominations []Nomination
	// Taints are to be put on or taken off nodes; each is owed a TaintDone.
	Taints []Taint
	// Evictions are to be posted; each is owed an EvictionDone.
	Evictions []Eviction
	// Surges are to be asked of Deployments; each is owed a SurgeDone.
	Surges []Surge
	// ScaleUps are to be asked of the provider; each is owed a ScaleUpDone.
	ScaleUps []ScaleUp
	// NodeDeletions are to be asked of the provider; each is owed a
	// NodeDeletionDone.
	NodeDeletions []NodeDeletion
	// TargetDecreases are to be asked of the provider: they give up nodes that it was
	// asked for and hasn't made. Nothing is owed; the next GroupsSet tells.
	TargetDecreases []TargetDecrease
	// StatusWrites are to be written to objects that ask for headroom, and to pod groups; each is owed a
	// StatusWritten, but for those that a later one of the same object replaces.
	StatusWrites []StatusWrite
	// Conditions are to be written to pod status. Nothing is owed: nothing but people
	// reads them, and a later one of the same pod replaces it.
	Conditions []Condition
	// Events are to be emitted. Nothing is owed.
	Events []Event
	// PermitWaits are the waits for permission that have ended. Nothing is owed.
	PermitWaits []PermitWait
	// ScaleUpFailures are orders that were refused and instances that didn't become nodes, one
	// for each group and code. Nothing is owed.
	ScaleUpFailures []ScaleUpFailure
	// SettledScaleUps and SettledDeletions are the outcomes of calls that had no answer, as the
	// provider's list has told them since. Nothing is owed.
	SettledScaleUps  []ScaleUpDone
	SettledDeletions []NodeDeletionDone
	// RemovalWaits are the waits of nodes that were to be removed which have ended. Nothing is
	// owed.
	RemovalWaits []RemovalWait
	// LaunchStages are the stages that launches of nodes have reached. Nothing is owed.
	LaunchStages []LaunchStage
	// Comparisons are what a shadow has found of pods that another scheduler places. Nothing is
	// owed.
	Comparisons []Comparison
	// NodeComparisons are what a shadow has found of nodes that another autoscaler buys and
	// removes. Nothing is owed.
	NodeComparisons []NodeComparison
	// Decisions are the ledger of this Step, in order.
	Decisions []Decision
	// Plan, when set, wants a follower to catch up now and a plan to be made;
	// a PlanMade is owed.
	Plan *autoscaler.Request
	// NextWake is when to Step again even if nothing happens. It is now when
	// there is more to do, and zero when only an input can help.
	NextWake time.Time
}

// Bind assigns a pod to a node.
type Bind struct {
	UID             types.UID
	Namespace, Name string
	// Node is where the state has the pod already: the pod is assumed.
	Node string
	// Profile is the pod's schedulerName, Attempts how often it was tried, and Queued
	// when it was first queued: for events and metrics.
	Profile  string
	Attempts int
	Queued   time.Time
	// Writes are objects to be updated before the pod is bound, and Claims the pod's
	// claims that have to be bound then, all within Timeout; otherwise the Bind fails.
	Writes  []cluster.Object `json:",omitempty"`
	Claims  []string         `json:",omitempty"`
	Timeout time.Duration    `json:",omitempty"`
	// DeviceClaims are the claims that must have their devices, and be reserved for the pod, when it
	// is bound; a claim without a UID is created, for extended resources, and then the pod's status
	// gets ExtendedResources. Devices with binding conditions are waited for, for DeviceTimeout. Other
	// pods may write the same claims at the same time, with the same devices.
	//
	// When the Bind fails, what it has written of them is taken back first. Its outcome comes after the
	// core was told of what the API has of them since (ObjectSet, ObjectGone): devices that the API
	// has as taken mustn't be given away before.
	DeviceClaims      []*resourcev1.ResourceClaim           `json:",omitempty"`
	ExtendedResources []v1.ContainerExtendedResourceRequest `json:",omitempty"`
	DeviceTimeout     time.Duration                         `json:",omitempty"`
	// Extender is set when an extender posts the binding in Berth's place.
	Extender bool `json:",omitempty"`
}

// Deallocation takes the devices away from a resource claim that keeps a pod from every node, or
// deletes a claim that was left of an earlier attempt to bind the pod. Its outcome comes after the core
// was told of what the API has of the claim since.
type Deallocation struct {
	UID             types.UID // of the claim
	Namespace, Name string
	// Version is that of the claim that was looked at: if it has changed since, it is left alone.
	Version string
	Pod     types.UID
	Delete  bool `json:",omitempty"`
}

// Taint adds a taint to a node, or removes that with its key (Apply).
type Taint struct {
	Node string
	// UID is that of the node which the core knows: another one that has its name by now is left
	// alone. It is "" when the core knows none.
	UID types.UID `json:",omitempty"`
	// Taint replaces whatever taint of its key the node has. With Remove only the key counts.
	Taint  v1.Taint
	Remove bool
	// Cordon asks to make the node unschedulable, too. The removal of the taint
	// makes it schedulable again, if it wasn't unschedulable before.
	Cordon bool `json:",omitempty"`
	// Note is written with the taint, or taken away with it, as the annotation
	// autoscaler.RemovalNote; "" for none, and then nothing is cordoned.
	Note string `json:",omitempty"`
}

// Eviction asks a pod to leave its node, within disruption budgets.
type Eviction struct {
	UID             types.UID
	Namespace, Name string
	// Node is where the pod is, for the outcome and for events: the API evicts by pod.
	Node string
	// Grace is how long the pod may take to terminate; nil for as long as it says itself.
	Grace *time.Duration `json:",omitempty"`
}

// Surge asks a Deployment with one replica to make the successor of its pod, which is on a
// node that goes, before it deletes the pod.
type Surge struct {
	UID                   types.UID // of the pod
	Node                  string
	Namespace, Deployment string
	At                    time.Time // tells one surge of the Deployment from another
	Until                 time.Time // nobody waits for the successor then, and no rollout begins; zero for never
	// With are further Deployments of the namespace, sorted: those of the other members of a pod group that
	// goes as a whole. The Deployment rolls only if each of these may, or does for the same At.
	With []string
}

// ScaleUp asks for more nodes in a group.
type ScaleUp struct {
	Group string
	// Nodes is by how many nodes the group is to grow, not its new target.
	Nodes int
	// GPU is the resource of the GPUs of the group's nodes, "" when they have none.
	GPU v1.ResourceName `json:",omitempty"`
}

// NodeDeletion asks for the deletion of an instance, which is named by its node ("" when it
// isn't a node yet), by its provider ID, or by both.
type NodeDeletion struct {
	Group, Node, Instance string
	// Reason is why it goes.
	Reason RemovalReason `json:",omitempty"`
	// GPU is the resource of the node's GPUs, "" when it has none.
	GPU v1.ResourceName `json:",omitempty"`
	// Atomic reports that the nodes of the group go together: a call for several isn't split.
	Atomic bool `json:",omitempty"`
}

// RemovalReason is why a node goes, in Cluster Autoscaler's words.
type RemovalReason string

// The reasons.
const (
	RemovedEmpty         RemovalReason = "empty"
	RemovedUnderutilized RemovalReason = "underutilized" // pods were evicted for it
	RemovedUnready       RemovalReason = "unready"
)

// The reasons of instances that aren't nodes.
const (
	InstanceLate      RemovalReason = "unregistered" // it has had its time to become one
	InstanceFailed    RemovalReason = "failed"       // the provider says that it won't become one
	InstanceCancelled RemovalReason = "cancelled"    // no pod needs it any more
)

// OfNode reports whether it is a reason of a node.
func (r RemovalReason) OfNode() bool {
	return r == RemovedEmpty || r == RemovedUnderutilized || r == RemovedUnready
}

// TargetDecrease lowers the target of a group without deleting a node.
type TargetDecrease struct {
	Group string
	// Nodes is by how much the target is lowered; it must not go below the instances that exist.
	Nodes int
}

// Condition is a PodScheduled=False condition.
type Condition struct {
	UID             types.UID
	Namespace, Name string
	Since           time.Time // when the status became False
	Generation      int64     // of the pod that was tried
	Reason, Message string
	// Event goes with the condition: a condition that is replaced before it was
	// written takes its event along. It may be nil.
	Event *Event
}

// StatusWrite replaces the status of a CapacityBuffer, the conditions of a ProvisioningRequest, or one
// condition of a PodGroup: one of the three is set.
type StatusWrite struct {
	UID             types.UID
	Namespace, Name string
	Buffer          *autoscalingapi.CapacityBufferStatus
	Request         *autoscalingapi.ProvisioningRequestStatus
	PodGroup        *metav1.Condition `json:",omitempty"`
}

// Event is a Kubernetes event about an object.
type Event struct {
	// Reporter is the reporting controller: a pod's schedulerName, Autoscaler or Berth.
	Reporter        string
	Kind            string // Pod, Node, or ConfigMap
	UID             types.UID
	Namespace, Name string // Name is "" for the status ConfigMap (StatusEvent)
	// Related is the node group or the node that an event of the status ConfigMap speaks of;
	// "" for none. Events that differ in it, or in Preemptor, are never one series.
	Related string
	// Preemptor is the pod, or the pod group, for which the pod of the event left its node; zero for none.
	Preemptor PodName
	// Warning events have the type Warning, all others Normal.
	Warning bool
	// Reason is one of EventReasons.
	Reason, Action string
	Message        string
}

// PodName names a pod, or a pod group.
type PodName struct {
	UID             types.UID
	Namespace, Name string
	PodGroup        bool `json:",omitempty"`
}

// Preemption asks a victim to leave its node: the condition DisruptionTarget is written,
// then the pod is deleted.
type Preemption struct {
	UID             types.UID
	Namespace, Name string
	// Node is the victim's node. The preempting pod is nominated to it, unless the victim leaves
	// with other members of its pod group.
	Node    string
	By      types.UID // the preempting pod, or pod group
	ByGroup bool      `json:",omitempty"` // By is a pod group
	Message string    // of the condition
	// Generation is the victim's, as the condition observed it.
	Generation int64
}

// ScaleUpFailure says that nodes of a group weren't made.
type ScaleUpFailure struct {
	Group string
	// Nodes is how many nodes failed: those of the order, or the instances.
	Nodes int
	// Code is the kind of failure in Cluster Autoscaler's words (nodegroup.FailureCode).
	Code string
	Why  string // of the first of these nodes
	GPU  v1.ResourceName
}

// RemovalWait is how long a node that was due to be removed waited until its removal began, or
// until it was needed again.
type RemovalWait struct {
	// Removed is false when the node was needed again.
	Removed bool
	Reason  autoscaler.KeptReason // what kept it last; "" when nothing did
	Took    time.Duration         // from when it was due
}

// LaunchStage is how long a node took from its order until its launch reached a stage.
type LaunchStage struct {
	Group string
	Stage LaunchedUntil
	Took  time.Duration
}

// LaunchedUntil is a stage of a launch.
type LaunchedUntil string

// The stages of a launch, in their order. A provider that lists no instances has no Listed.
const (
	LaunchListed     LaunchedUntil = "listed"     // by the provider
	LaunchRegistered LaunchedUntil = "registered" // as a node in the API
	LaunchReady      LaunchedUntil = "ready"      // takes pods
	LaunchRuns       LaunchedUntil = "podRunning" // the first pod runs that is no DaemonSet's
)

// LaunchStages are all stages.
var LaunchStages = []LaunchedUntil{LaunchListed, LaunchRegistered, LaunchReady, LaunchRuns}

// Cancel takes back the Bind of a pod that is a victim of a preemption, or gone, unless it was
// posted already.
type Cancel struct{ UID types.UID }

// Nomination writes status.nominatedNodeName, "" for none.
type Nomination struct {
	UID             types.UID
	Namespace, Name string
	Node            string
}

// Consult asks the extenders that a pod concerns which of the nodes they allow, and for
// their scores; or, when no node takes the pod, to which preemptions they agree.
type Consult struct {
	UID types.UID
	// Number tells the question from others about the pod, as it was or will be.
	Number uint64
	// Pod is as the extenders are to see it; nobody changes it.
	Pod   *v1.Pod
	Nodes []string // that the rules allow, by name
	// Candidates are the nodes where preemption would help.
	Candidates []PreemptionCandidate `json:",omitempty"`
}

// PreemptionCandidate is a node with the pods that would have to leave it.
type PreemptionCandidate struct {
	Node       string
	Victims    []*v1.Pod
	Violations int // of disruption budgets
}

// PermitWait is how a pod's wait for permission has ended, for metrics.
type PermitWait struct {
	// Allowed is false when a plugin refused the pod or didn't answer in time.
	Allowed bool
	Took    time.Duration
}
