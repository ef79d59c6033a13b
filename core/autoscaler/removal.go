package autoscaler

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
)

// This file holds what the core and the planner exchange about unneeded nodes: the rules by which
// nodes may be removed, the part of a request that asks for removable nodes, and the part of a plan
// that lists them, with the reason for each node that stays.

// ScaleDownDisabledAnnotation keeps a node when its value is "true".
const ScaleDownDisabledAnnotation = cluster.ScaleDownDisabledAnnotation

// RemovalNote is the annotation that Berth writes with ToBeDeletedTaint: by it, Berth knows
// after a restart which removals are its own. Its value says why the node goes.
const RemovalNote = "berth.dev/removal"

// RemovalRules say which nodes may be removed, and which pods may be evicted for that. Names
// are those of Cluster Autoscaler's flags; core.DefaultAutoscale has the defaults. The zero
// value has no node with pods removed.
type RemovalRules struct {
	// Groups whose provider has options of its own use these instead
	// (nodegroup.Options).
	UtilizationThreshold    float64 // --scale-down-utilization-threshold
	GPUUtilizationThreshold float64 // --scale-down-gpu-utilization-threshold
	IgnoreDaemonPods        bool    // --ignore-daemonsets-utilization
	IgnoreMirrorPods        bool    // --ignore-mirror-pods-utilization

	KeepUnready bool // --scale-down-unready-enabled=false

	SkipSystemPods           bool          // --skip-nodes-with-system-pods
	SystemPodTimeout         time.Duration // --blocking-system-pod-distruption-timeout
	SkipLocalStorage         bool          // --skip-nodes-with-local-storage
	SkipCustomControllerPods bool          // --skip-nodes-with-custom-controller-pods
	MinReplicas              int           // --min-replica-count

	// Surge has a pod's successor run before the pod leaves a node that is drained, for
	// Deployments that ask for it (--surge).
	Surge bool

	// RecheckAfter is how long a node isn't simulated again that could not be removed,
	// unless something on it has changed (--unremovable-node-recheck-timeout).
	RecheckAfter time.Duration
}

// ScaleDown is the part of a request that asks which nodes could be removed together.
type ScaleDown struct {
	// Rules are from the flags. Groups whose provider has options of its own override some of them.
	Rules RemovalRules
	// Displaced are pods that have to find a node before any other may be given up: those on
	// nodes that are on their way out, and those that were evicted lately and whose
	// replacements aren't there yet, as far as no room is kept for them. In order.
	Displaced []*cluster.Pod
	// Leaving is, by the ID of the group, how many nodes are on their way out that the
	// group's target still includes; groups without any have no entry.
	Leaving map[string]int
	// Consolidate asks for nodes that could be replaced by cheaper ones, too; nil when none is
	// to be. Replacing is the consolidation that is under way; nil for none.
	Consolidate *Consolidate
	Replacing   *Replacing
}

// Removal is a node that could be removed, together with all others of its plan. It doesn't
// change once it is in a plan.
type Removal struct {
	// Node is a name. The core checks that the node still stands as planned before it is tainted.
	Node string
	// Utilization is the largest share of a resource that its pods request: 0 to 1, or more.
	Utilization float64
	// Homes are the pods that would be evicted, in the order in which they were placed, with
	// the nodes that have room for them. None for an empty node.
	Homes []Home
	// With are all nodes that go together with this one or not at all, itself among them, sorted: pods on
	// them leave together (spec.disruptionMode.all of a PodGroup). None for a node that goes alone.
	With []string `json:",omitempty"`
	// WaitsFor are pods that have to end by themselves before the node goes
	// (safe-to-evict: on-completion), by name.
	WaitsFor []string
}

// Empty reports whether no pod has to be evicted for the node to go.
func (r *Removal) Empty() bool { return len(r.Homes) == 0 }

// Home is the node that has room for the replacement of a pod that would be evicted.
type Home struct {
	// Pod is the pod that would be evicted: its replacement has no UID yet.
	Pod  types.UID
	Node string
}

// Kept is why a node stays.
type Kept struct {
	Node string
	// Reason is the first that a pass has found: whether a node may be a candidate is checked
	// before anything is simulated.
	Reason KeptReason
	// Pod is the pod that keeps the node, by name, "" where none does.
	Pod string
	// Detail says the reason in words, with its quantities: what would have to change.
	Detail string
	// Resource is that of KeptMinTotal.
	Resource v1.ResourceName `json:",omitempty"`
	// Since is when the node was simulated with this outcome, of KeptNoPlace, which isn't
	// looked for in every plan; zero of others, which are as of the plan.
	Since time.Time
	// Utilization is as in Removal.
	Utilization float64
}

// KeptReason says by what kind of reason a node stays. The words are those of Cluster
// Autoscaler's metric unremovable_nodes_count, where it has the reason.
type KeptReason string

// The reasons for which a node isn't a candidate.
const (
	KeptNotAutoscaled KeptReason = "NotAutoscaled"               // it is in no node group
	KeptDisabled      KeptReason = "ScaleDownDisabledAnnotation" // its annotation says so
	KeptRollout       KeptReason = "NodeGroupRollingOut"         // the provider replaces its group's nodes, and chooses itself which one goes
	KeptUnready       KeptReason = "ScaleDownUnreadyDisabled"    // unready nodes aren't removed
	KeptStarting      KeptReason = "Starting"                    // it isn't ready yet and is waited for
	KeptLeaving       KeptReason = "CurrentlyBeingDeleted"       // it is on its way out
	KeptInterrupted   KeptReason = "AboutToBeInterrupted"        // the cloud is about to take it, and it goes by another way
	KeptUtilized      KeptReason = "NotUnderutilized"            // its utilization is above the threshold
	KeptReplaced      KeptReason = "AwaitsReplacement"           // it goes when the nodes are there that are to replace it
	KeptReplacement   KeptReason = "IsReplacement"               // its group has grown to replace other nodes, which are still going
	// Of both minimums only what is left above them may go: which nodes are kept depends on the
	// order in which nodes are considered.
	KeptMinSize           KeptReason = "NodeGroupMinSizeReached"
	KeptMinTotal          KeptReason = "MinimalResourceLimitExceeded"
	KeptAwaited           KeptReason = "PodIsToCome"              // a pod is nominated to it
	KeptDestination       KeptReason = "IsDestination"            // pods of nodes that could go have room on it
	KeptNoPlace           KeptReason = "NoPlaceToMovePods"        // a pod has nowhere to go
	KeptBlockedByPod      KeptReason = "BlockedByPod"             // a pod mustn't be evicted
	KeptAtomic            KeptReason = "AtomicScaleDownFailed"    // its group goes as a whole or not at all
	KeptNotSimulated      KeptReason = "NotSimulated"             // the pass had taken long enough; the next goes on
	KeptDisplaced         KeptReason = "DisplacedPods"            // pods on nodes that go, or were evicted, have nowhere to go
	KeptSick              KeptReason = "ClusterUnhealthy"         // too many nodes aren't ready
	KeptNotLongEnough     KeptReason = "NotUnneededLongEnough"    // of a candidate: its time has not come
	KeptNotUnreadyEnough  KeptReason = "NotUnreadyLongEnough"     // the same of an unready one
	KeptGroupDelayed      KeptReason = "InCooldown"               // of a candidate: its group grew, shrank or failed to lately
	KeptThrottled         KeptReason = "Throttled"                // of a candidate: as many nodes go as may
	KeptNodeBudget        KeptReason = "NodeBudget"               // of a candidate: as many nodes of its group go as a node budget lets go
	KeptOnCompletion      KeptReason = "BlockedByOnCompletionPod" // of a candidate: a pod has to end by itself
	KeptSomebodyElsesTask KeptReason = "TaintedBySomebodyElse"    // it has the taint of nodes being deleted, and Berth hasn't put it there
)

// DrainTier is how long pods from a priority on may take to terminate when their node is
// drained (--drain-priority-config). Pods of lower tiers leave first.
type DrainTier struct {
	// Priority is the lowest of the tier; the tier ends below that of the next.
	Priority int32
	Grace    time.Duration
}
