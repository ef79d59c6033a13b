package step

import (
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
)

// Input is something that happened: an object changed, or work was done.
type Input interface{ input() }

// PodSet says how a pod now is.
type PodSet struct{ Pod *v1.Pod }

// PodGone says that a pod was deleted.
type PodGone struct{ UID types.UID }

// NodeSet says how a node now is, and of which group it is ("" for none).
type NodeSet struct {
	Node  *v1.Node
	Group string
}

// NodeGone says that a node was deleted.
type NodeGone struct{ Name string }

// WorkloadSet says how a Service, ReplicaSet, StatefulSet or
// ReplicationController now selects.
type WorkloadSet struct{ Workload *cluster.Workload }

// DaemonSetSet says how a DaemonSet now is.
type DaemonSetSet struct{ DaemonSet *appsv1.DaemonSet }

// WorkloadGone says that one was deleted.
type WorkloadGone struct {
	Kind            cluster.WorkloadKind
	Namespace, Name string
}

// GroupsSet says how all node groups now are. It must not be older than the
// last ScaleUpDone.
type GroupsSet struct{ Groups []nodegroup.Group }

// PlanMade is the outcome of Ready.Plan.
type PlanMade struct{ Plan *autoscaler.Plan }

// BindDone is the outcome of a Bind.
type BindDone struct {
	UID types.UID
	Err error
}

// TaintDone is the outcome of a Taint.
type TaintDone struct {
	Node string
	Err  error
}

// EvictionDone is the outcome of an Eviction.
type EvictionDone struct {
	UID  types.UID
	Node string
	Err  error
}

// ScaleUpDone is the outcome of a ScaleUp.
type ScaleUpDone struct {
	Group string
	Nodes int
	Err   error
}

// NodeDeletionDone is the outcome of a NodeDeletion, which it names.
type NodeDeletionDone struct {
	Node, Instance string
	Err            error
}

// PreemptionDone is the outcome of a Preemption. A pod that is gone already is
// no failure.
type PreemptionDone struct {
	UID, By types.UID
	Err     error
}

// NominationDone is the outcome of a Nomination.
type NominationDone struct {
	UID  types.UID
	Node string
	Err  error
}

// Consulted is the outcome of a Consult. Nodes that it names beyond those that
// were asked about don't count.
type Consulted struct {
	UID   types.UID
	Nodes []string // that all extenders allow
	// Failed are the reasons for others, by node.
	Failed map[string]string
	// Scores are added to the nodes' own, weighted already.
	Scores map[string]int64
	Err    error // of an extender that isn't ignorable
	// Agreed are the victims that all agree to, when that was asked; by name of
	// the node.
	Agreed []Agreed `json:",omitempty"`
}

// ObjectSet says how an object that rules read as it stands now is: a
// Namespace, or one of storage (cluster.Object).
type ObjectSet struct{ Object cluster.Object }

// ObjectGone says that one was deleted.
type ObjectGone struct {
	Kind            cluster.ObjectKind
	Namespace, Name string
}

// Agreed are the victims on a node that extenders agree to.
type Agreed struct {
	Node       string
	Pods       []types.UID
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
func (PlanMade) input()         {}
func (BindDone) input()         {}
func (TaintDone) input()        {}
func (EvictionDone) input()     {}
func (ScaleUpDone) input()      {}
func (NodeDeletionDone) input() {}
func (PreemptionDone) input()   {}
func (NominationDone) input()   {}
func (Consulted) input()        {}
func (ObjectSet) input()        {}
func (ObjectGone) input()       {}
