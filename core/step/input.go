package step

// This file holds the inputs of a Step: what the API and the provider show, and the
// outcomes of work. Inputs about one object come in the order in which it changed. What
// outcome a piece of work is owed is said in Ready.

import (
	"errors"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
)

// Input is something that happened: an object changed, or a piece of work ended.
//
// An object whose name was used before, by another that had another UID, is Set only after
// that one is Gone, and both are inputs of one Step: the core knows pods by their UIDs and
// everything else by its name.
type Input interface{ input() }

// PodSet is a pod that was added or has changed.
type PodSet struct{ Pod *v1.Pod }

// PodGone says that a pod was deleted.
type PodGone struct{ UID types.UID }

// NodeSet is a node that was added or has changed, with the ID of its node group ("" for
// none).
type NodeSet struct {
	Node  *v1.Node
	Group string
}

// NodeGone says that a node was deleted.
type NodeGone struct{ Name string }

// WorkloadSet is a Service, ReplicaSet, StatefulSet, ReplicationController or Job that was
// added or has changed.
type WorkloadSet struct{ Workload *cluster.Workload }

// DaemonSetSet is a DaemonSet that was added or has changed.
type DaemonSetSet struct{ DaemonSet *appsv1.DaemonSet }

// WorkloadGone says that a workload was deleted.
type WorkloadGone struct {
	Kind            cluster.WorkloadKind
	Namespace, Name string
}

// GroupsSet is what the provider tells of all its node groups. What it says about a group must
// not be older than the last outcome of a call of that group. As with all inputs, nobody changes
// what it refers to any more: the same list of instances again says the same.
type GroupsSet struct {
	Groups []nodegroup.Group
	// Busy are the groups, by ID, about which it says nothing, since a call of theirs was
	// under way: they are as they were.
	Busy []string `json:",omitempty"`
}

// Says reports whether it says something about a group: how it is, or that there is none.
func (in *GroupsSet) Says(group string) bool { return !slices.Contains(in.Busy, group) }

// ServerTime is the time that an answer of the API server bears which has just come: by it ages of
// objects are measured.
type ServerTime struct{ At time.Time }

// PlanMade is the outcome of Ready.Plan.
type PlanMade struct{ Plan *autoscaler.Plan }

// BindDone is the outcome of a Bind. After an error the pod leaves its node in the state and is
// tried again, unless the API shows it as bound.
type BindDone struct {
	UID types.UID
	Err error
}

// DeallocationDone is the outcome of a Deallocation. UID is that of the claim.
type DeallocationDone struct {
	UID types.UID
	Err error
}

// TaintDone is the outcome of a Taint. Key and Remove tell it from the outcomes of other taints of
// the same node.
type TaintDone struct {
	Node   string
	Key    string // of the taint
	Remove bool   `json:",omitempty"` // it was to be taken off
	Err    error
}

// EvictionDone is the outcome of an Eviction.
type EvictionDone struct {
	UID types.UID
	// Node is where the pod was when the eviction was asked for.
	Node string
	Err  error
	// Refused says that Err is a disruption budget's (ErrRefused): it may allow the eviction
	// later.
	Refused bool `json:",omitempty"`
}

// ErrRefused is in the error of an eviction that a disruption budget doesn't allow: workers
// wrap it, and the driver sets EvictionDone.Refused by it.
var ErrRefused = errors.New("a disruption budget does not allow the eviction")

// SurgeDone is the outcome of the Surge for a pod: its Deployment rolls, or Err says why it
// doesn't make the successor first.
type SurgeDone struct {
	UID  types.UID
	Node string
	Err  error
}

// ScaleUpDone is the outcome of a ScaleUp.
type ScaleUpDone struct {
	Group string
	// Nodes is how many nodes were asked for, as in the ScaleUp, also when Err is set.
	Nodes int
	Err   error
	// Class is that of Err (nodegroup.ClassOf).
	Class nodegroup.ErrorClass `json:",omitempty"`
	// Unknown reports that the call had no answer (nodegroup.OutcomeUnknown): Err says why. The
	// next GroupsSet that says something of the group settles whether nodes were ordered.
	Unknown bool `json:",omitempty"`
}

// NodeDeletionDone is the outcome of the NodeDeletion with the same node and instance.
type NodeDeletionDone struct {
	// Node and Instance are those of the NodeDeletion, "" where it had none.
	Node, Instance string
	Err            error
	// Unknown reports that the call had no answer (nodegroup.OutcomeUnknown): Err says why. The
	// next GroupsSet that says something of the group settles whether the instance goes.
	Unknown bool `json:",omitempty"`
}

// PreemptionDone is the outcome of a Preemption. That the victim is gone already is no
// failure.
type PreemptionDone struct {
	// UID is the victim's, and By the preemptor's.
	UID, By types.UID
	Err     error
}

// NominationDone is the outcome of a Nomination.
type NominationDone struct {
	UID types.UID
	// Node is what was written, "" for a nomination that was cleared: with several writes of one pod
	// under way it tells which of them this is the outcome of.
	Node string
	Err  error
}

// StatusWritten is the outcome of a StatusWrite.
type StatusWritten struct {
	// UID is that of the object that asks for headroom.
	UID types.UID
	Err error
}

// Consulted is the outcome of a Consult. Nodes that the Consult didn't name don't count. It is
// ignored when the pod has changed since, so that its extenders were asked again.
type Consulted struct {
	UID    types.UID
	Number uint64   // of the Consult; 0, as in recordings of a time without numbers, is the last about the pod
	Nodes  []string // that all extenders allow
	// Failed are the reasons why extenders don't allow the others, by node.
	Failed map[string]string
	// Scores are what extenders add to the nodes' scores, weighted already.
	Scores map[string]int64
	Err    error // of an extender that isn't ignorable
	// Agreed are the candidates of the Consult that all extenders agree to, sorted by
	// node.
	Agreed []Agreed `json:",omitempty"`
}

// ObjectSet is an object that was added or has changed and that is read as it stands: a
// Namespace, a PodDisruptionBudget, one of storage or of headroom (cluster.Object).
type ObjectSet struct{ Object cluster.Object }

// ObjectGone says that such an object was deleted.
type ObjectGone struct {
	Kind            cluster.ObjectKind
	Namespace, Name string
}

// Agreed are the victims on a node that extenders agree to. An extender may only narrow down
// the candidates of the Consult and their victims (ProcessPreemption).
type Agreed struct {
	Node string
	Pods []types.UID
	// Violations is how many of these evictions violate disruption budgets, as extenders count them.
	Violations int
}

func (PodSet) input()           {}
func (PodGone) input()          {}
func (NodeSet) input()          {}
func (NodeGone) input()         {}
func (WorkloadSet) input()      {}
func (DaemonSetSet) input()     {}
func (WorkloadGone) input()     {}
func (GroupsSet) input()        {}
func (ServerTime) input()       {}
func (PlanMade) input()         {}
func (BindDone) input()         {}
func (DeallocationDone) input() {}
func (TaintDone) input()        {}
func (EvictionDone) input()     {}
func (SurgeDone) input()        {}
func (ScaleUpDone) input()      {}
func (NodeDeletionDone) input() {}
func (PreemptionDone) input()   {}
func (NominationDone) input()   {}
func (StatusWritten) input()    {}
func (Consulted) input()        {}
func (ObjectSet) input()        {}
func (ObjectGone) input()       {}
