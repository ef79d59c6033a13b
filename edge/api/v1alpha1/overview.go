package v1alpha1

import "time"

// Overview is the cluster at a glance.
type Overview struct {
	At time.Time `json:"at"`
	// Seq is the number of the last decision.
	Seq  uint64    `json:"seq"`
	Pods PodCounts `json:"pods"`
	// Pending are the pods without a node by what they wait for, the most pods first.
	Pending []PendingReason `json:"pending"`
	Nodes   NodeCounts      `json:"nodes"`
	// Utilization is of all nodes together: cpu and memory, then extended resources by name.
	Utilization []ResourceUse `json:"utilization"`
	// Money is nil when Berth only schedules, or no price is known.
	Money *MoneySum `json:"money,omitempty"`
	// Attention is what somebody might act on, the most urgent first.
	Attention []Attention `json:"attention"`
	// Buying are the node groups with nodes that are coming, by name.
	Buying []Buying `json:"buying,omitempty"`
	// Draining are the nodes on their way out, by name; 50 at most.
	Draining []Draining `json:"draining,omitempty"`
	// Preempting are the pods whose victims are leaving, by name; 50 at most.
	Preempting []Preempting `json:"preempting,omitempty"`
	// BackingOff are the node groups that aren't asked for nodes for a while, by name.
	BackingOff []BackingOff `json:"backingOff,omitempty"`
	// CoolingDown are the node groups whose candidates for removal wait for a delay, by name.
	CoolingDown []CoolingDown `json:"coolingDown,omitempty"`
	// ScaleDown is nil when Berth only schedules.
	ScaleDown *ScaleDown `json:"scaleDown,omitempty"`
	// Unpriced are the node groups without a price; nil when all have one, or no flag needs prices.
	Unpriced *Unpriced `json:"unpriced,omitempty"`
	// Resizes are the resizes in place that kubelets have not begun; nil for none, and when Berth only schedules.
	Resizes *PendingResizes `json:"resizes,omitempty"`
	// Activity are the last runs of decisions, the oldest first: decisions of one kind that follow each
	// other are one run.
	Activity []Run `json:"activity"`
}

// PodCounts counts pods.
type PodCounts struct {
	// Placed are on nodes, those that are being bound included.
	Placed int `json:"placed"`
	// Pending have no node in the API. Ours are those of Berth's own profiles among them.
	Pending int `json:"pending"`
	Ours    int `json:"ours"`
	// Oldest is when the pod was first seen that has waited longest.
	Oldest time.Time `json:"oldest,omitzero"`
}

// PendingState is what a pod without a node waits for.
type PendingState string

// The states of pending pods. The first that holds is given.
const (
	Binding    PendingState = "Binding"    // it has a node, and the API doesn't show that yet
	Gated      PendingState = "Gated"      // a plugin keeps it out of the queue
	PodPreempt PendingState = "Preempting" // its victims are leaving
	NodeComing PendingState = "NodeComing" // a node that was ordered for it is coming
	Nominated  PendingState = "Nominated"  // it waits for the node that it is nominated to
	Untried    PendingState = "Untried"    // it is about to be tried a first time
	Rejected   PendingState = "Rejected"   // no node takes it
	Unmanaged  PendingState = "Unmanaged"  // it asks for a scheduler that isn't Berth
)

// PendingReason are pods that wait for the same.
type PendingReason struct {
	State PendingState `json:"state"`
	// Reason is why most nodes reject a rejected pod, in kube-scheduler's words; why a gated one waits;
	// the node group of one whose node is coming; the scheduler of an unmanaged one. It may have names in it, so that but for
	// the node group it is left out for a viewer who may read none of the pods.
	Reason string `json:"reason,omitempty"`
	Plugin string `json:"plugin,omitempty"` // that rejects most nodes
	Pods   int    `json:"pods"`
	// Example is the pod of them that has waited longest, as namespace/name, since Since.
	Example string    `json:"example,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// NodeCounts counts nodes.
type NodeCounts struct {
	Total int `json:"total"` // Ready and NotReady
	Ready int `json:"ready"`
	// NotReady and Unschedulable (cordoned) may overlap.
	NotReady      int `json:"notReady"`
	Unschedulable int `json:"unschedulable"`
	// Target is what all node groups together are assumed to have, and Launching are coming; 0 when
	// Berth only schedules.
	Target    int `json:"target,omitempty"`
	Launching int `json:"launching,omitempty"`
	// Removable and Leaving are candidates for removal, and nodes on their way out.
	Removable int `json:"removable,omitempty"`
	Leaving   int `json:"leaving,omitempty"`
}

// Unpriced are node groups without a price where flags need prices.
type Unpriced struct {
	NeededBy []string `json:"neededBy"` // flags
	Groups   []string `json:"groups"`   // by name; 50 at most
	Without  int      `json:"without"`  // number of groups without a price
	Of       int      `json:"of"`       // number of all groups
}

// Severity is how urgent something is.
type Severity string

// The severities.
const (
	Critical Severity = "critical"
	Warning  Severity = "warning"
	Info     Severity = "info"
)

// Attention is something that somebody might act on.
type Attention struct {
	Severity Severity `json:"severity"`
	// Kind tells entries apart: PodsRejected, GroupBackingOff, NodesNotReady, NodesBlocked,
	// ScaleDownHeld, Unpriced, TemplateError.
	Kind string `json:"kind"`
	// Message is a sentence. What it is about is in the other fields, too.
	Message string `json:"message"`
	// Count is how many pods, nodes or groups it is about.
	Count int `json:"count,omitempty"`
	// Pod (namespace/name), Node and Group are those it is about, or examples.
	Pod   string `json:"pod,omitempty"`
	Node  string `json:"node,omitempty"`
	Group string `json:"group,omitempty"`
	// Since is since when, and Until when it ends by itself.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Price is what it costs an hour.
	Price Price `json:"price,omitempty"`
}

// Expectation is when a node is expected, by the latest launches of its group.
type Expectation struct {
	Ordered time.Time `json:"ordered,omitzero"`
	// Likely and Late are when half, and nine tenths, of the launches would have been over.
	Likely time.Time `json:"likely,omitzero"`
	Late   time.Time `json:"late,omitzero"`
	// Launches is how many launches these two are after.
	Launches int `json:"launches,omitempty"`
	// GivenUp is when the node is no longer waited for.
	GivenUp time.Time `json:"givenUp,omitzero"`
}

// Buying is a node group of which nodes are coming.
type Buying struct {
	Group string `json:"group"`
	Nodes int    `json:"nodes"`
	// Pods are those that have a place on them; 0 for nodes that were ordered to reach the minimum.
	Pods  int          `json:"pods"`
	Price Price        `json:"price,omitempty"` // of all these nodes
	Next  *Expectation `json:"next,omitempty"`  // of the oldest
}

// Draining is a node on its way out.
type Draining struct {
	Node  string `json:"node"`
	Group string `json:"group,omitempty"`
	Price Price  `json:"price,omitempty"`
	Leaving
	// Pods are still on it and have to leave.
	Pods int `json:"pods"`
}

// Leaving is how far a node is on its way out.
type Leaving struct {
	// Step is where it is, Why a sentence about why it goes.
	Step string `json:"step"`
	Why  string `json:"why,omitempty"`
	// Next is when it is looked at though nothing happens.
	Next time.Time `json:"next,omitzero"`
}

// Preempting is a pod whose victims are leaving.
type Preempting struct {
	Pod  string `json:"pod"` // namespace/name
	Node string `json:"node,omitempty"`
	// Victims are those that the viewer may read, and Count all of them.
	Victims []string `json:"victims,omitempty"`
	Count   int      `json:"count"`
}

// BackingOff is a node group that isn't asked for nodes.
type BackingOff struct {
	Group string `json:"group"`
	Backoff
}

// Backoff is why a group isn't asked for nodes, and until when.
type Backoff struct {
	// Class is Cluster Autoscaler's InstanceErrorClass.
	Class string `json:"class"`
	// Reason is in the provider's words where there are any.
	Reason string    `json:"reason"`
	Until  time.Time `json:"until"`
}

// PendingResizes are the resizes in place that kubelets have not begun (condition PodResizePending).
type PendingResizes struct {
	// Deferred are those for which their node lacks room now, and Infeasible those that it can't carry out.
	Deferred   int `json:"deferred"`
	Infeasible int `json:"infeasible"`
	// Moving are the pods of either that are being moved.
	Moving int `json:"moving"`
	// Pods are those that the viewer may read: the ones that are being moved first, then the longest pending; of all
	// pods the first 50 are looked at.
	Pods []PendingResize `json:"pods"`
}

// PendingResize is a pod whose resize in place is pending.
type PendingResize struct {
	Pod    string `json:"pod"` // namespace/name
	Node   string `json:"node"`
	Reason string `json:"reason"` // deferred or infeasible
	// Since is when Berth first saw it.
	Since time.Time `json:"since"`
	// Lack is a sentence about what the node lacks.
	Lack string `json:"lack"`
	// Moves says that the pod is being moved, and Why what happens to it, or why it stays.
	Moves bool   `json:"moves,omitempty"`
	Why   string `json:"why,omitempty"`
}

// CoolingDown is a node group from which no node is removed until a delay is over.
type CoolingDown struct {
	Group string    `json:"group"`
	Nodes int       `json:"nodes"` // candidates
	Until time.Time `json:"until"`
	Why   string    `json:"why"`
}

// ScaleDown is where scale-down stands.
type ScaleDown struct {
	// Status is Disabled, Unknown, Held, Throttled, InCooldown, CandidatesPresent or NoCandidates.
	Status string `json:"status"`
	Why    string `json:"why,omitempty"`
	// Planned is when the plan was asked for that says so.
	Planned time.Time `json:"planned,omitzero"`
	// Reasons are the nodes by state and reason, the most money first.
	Reasons []NodesOfReason `json:"reasons"`
}

// NodesOfReason are nodes that stand alike.
type NodesOfReason struct {
	State  NodeState `json:"state"`
	Reason string    `json:"reason,omitempty"` // "" where the state says all
	Nodes  int       `json:"nodes"`
	Price  Price     `json:"price,omitempty"`
	// Node is one of them, and Pod the pod that keeps it, as namespace/name.
	Node string `json:"node,omitempty"`
	Pod  string `json:"pod,omitempty"`
}
