package v1alpha1

import "time"

// PodList is a page of pods.
type PodList struct {
	List
	Items []Pod `json:"items"`
}

// Pod is a pod in one row.
type Pod struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Created   time.Time `json:"created,omitzero"`
	Owner     *Owner    `json:"owner,omitempty"`
	// Node is where it is, "" while it is pending. State is what a pending one waits for, and "Placed".
	Node  string       `json:"node,omitempty"`
	State PendingState `json:"state"`
	// Reason and Plugin are as in PendingReason.
	Reason string `json:"reason,omitempty"`
	Plugin string `json:"plugin,omitempty"`
	// Since is when Berth first saw it without a node.
	Since time.Time `json:"since,omitzero"`
	// Attempts counts the decisions that found no node.
	Attempts int `json:"attempts,omitempty"`
	// Group is the node group of the node that is coming for it, and Expected when.
	Group    string       `json:"group,omitempty"`
	Expected *Expectation `json:"expected,omitempty"`
	// PodGroup is the group with whose members it is placed.
	PodGroup  string `json:"podGroup,omitempty"`
	Priority  int32  `json:"priority,omitempty"`
	Scheduler string `json:"scheduler,omitempty"`
	// Requests are what it requests, in the order of the resources' names.
	Requests []Amount `json:"requests,omitempty"`
}

// Placed is the state of a pod that has a node.
const Placed PendingState = "Placed"

// Pending are all pods without a node: by reason, then by workload.
type Pending struct {
	At   time.Time `json:"at"`
	Pods int       `json:"pods"`
	// Reasons are those of the overview, the most pods first.
	Reasons []PendingByReason `json:"reasons"`
}

// PendingByReason are the workloads whose pods wait for the same.
type PendingByReason struct {
	PendingReason
	// Workloads are by falling number of pods, 200 at most; OtherWorkloads is how many pods are in
	// the rest.
	Workloads []PendingWorkload `json:"workloads"`
	// OtherPods are the pods that no listed workload has, and Hidden those the viewer may not read.
	OtherPods int `json:"otherPods,omitempty"`
	Hidden    int `json:"hidden,omitempty"`
	// Next is when the next node is expected that is coming for them.
	Next *Expectation `json:"next,omitempty"`
}

// PendingWorkload are the pods of one controller that wait for the same.
type PendingWorkload struct {
	Namespace string `json:"namespace"`
	// Owner is nil for pods without a controller.
	Owner *Owner `json:"owner,omitempty"`
	Pods  int    `json:"pods"`
	// Example is the pod that has waited longest, since Since. What would help is in its detail.
	Example string    `json:"example"`
	Since   time.Time `json:"since,omitzero"`
}

// PodDetail is why a pod is where it is, or nowhere.
type PodDetail struct {
	At time.Time `json:"at"`
	Pod
	// Outcome is Placed, Fits (a node would take it), Waits or Gated; "" of a pod that is gone, of
	// which only Decisions and Timeline are known.
	Outcome string `json:"outcome,omitempty"`
	// Message is as the pod's condition has it.
	Message string `json:"message,omitempty"`
	// Queue is where it is in the queue, Queued since when, Tried when it was last tried, and Backoff
	// when it is next.
	Queue   string    `json:"queue,omitempty"`
	Queued  time.Time `json:"queued,omitzero"`
	Tried   time.Time `json:"tried,omitzero"`
	Backoff time.Time `json:"backoff,omitzero"`
	// Nominated is the node that it is to come to, once its victims have left.
	Nominated string   `json:"nominated,omitempty"`
	Victims   []string `json:"victims,omitempty"`
	// Preemption is why preempting other pods doesn't help.
	Preemption string `json:"preemption,omitempty"`
	// Permissions are the plugins that it waits for on its node, each until then at most.
	Permissions []Permission `json:"permissions,omitempty"`
	// Rejections say which rules reject which nodes, the most nodes first.
	Rejections []Rejection `json:"rejections,omitempty"`
	// Details say what nodes lack beyond what Rejections say, the most nodes first.
	Details []NodesLack `json:"details,omitempty"`
	// Devices are those that its resource claims have.
	Devices []DeviceOfPod `json:"devices,omitempty"`
	// Helps are what would help, the most promising first: a line each.
	Helps []Help `json:"helps,omitempty"`
	// Matrix has the scores of the best nodes; of a placed pod, as if it were placed now.
	Matrix *ScoreMatrix `json:"matrix,omitempty"`
	// Scaling is what node groups do for it; nil when it has a node.
	Scaling *Scaling `json:"scaling,omitempty"`
	// Timeline is from its creation to its binding, the oldest first.
	Timeline []TimelineEntry `json:"timeline"`
	// Decisions are the last about it, the oldest first.
	Decisions []Decision `json:"decisions"`
	// Hidden is how many pods of the lists above the viewer may not read.
	Hidden int `json:"hidden,omitempty"`
}

// Permission is a plugin that a pod waits for on its node.
type Permission struct {
	Plugin string    `json:"plugin"`
	Until  time.Time `json:"until"`
}

// Rejection is a reason for which nodes are rejected.
type Rejection struct {
	Plugin  string `json:"plugin"`
	Message string `json:"message"`
	Nodes   int    `json:"nodes"`
	// Short is what the nearest node has too little of.
	Short *Shortfall `json:"short,omitempty"`
}

// Shortfall is how much of a resource is missing.
type Shortfall struct {
	Resource string `json:"resource"`
	// Needed and Available are quantities of the resource.
	Needed    string `json:"needed"`
	Available string `json:"available"`
	Node      string `json:"node,omitempty"` // the nearest
}

// NodesLack is what some nodes lack.
type NodesLack struct {
	Nodes int    `json:"nodes"`
	Group string `json:"group,omitempty"` // the node group that they are in
	Node  string `json:"node"`            // the first of them by name, as an example
	Text  string `json:"text"`
}

// DeviceOfPod is a device that a pod has.
type DeviceOfPod struct {
	Claim   string `json:"claim"`   // in the pod's namespace
	Request string `json:"request"` // of the claim; with the alternative that was taken
	Driver  string `json:"driver"`
	Pool    string `json:"pool"`
	Device  string `json:"device"`
	// Share tells apart those who have a part of the device each.
	Share string `json:"share,omitempty"`
}

// Help is what would help a pod that waits.
type Help struct {
	// Kind is Relax (a plugin alone rejects Nodes nodes), Wait (a change after which it is tried again),
	// or Reserved (room that is kept for others).
	Kind   string `json:"kind"`
	Plugin string `json:"plugin,omitempty"`
	Nodes  int    `json:"nodes,omitempty"`
	// For is for whom the room is kept.
	For  string `json:"for,omitempty"`
	Text string `json:"text"`
}

// ScoreMatrix has a row for each plugin, and a column for each node.
type ScoreMatrix struct {
	// Nodes are by falling score, 10 at most. Chosen is the index of the one that the pod is on, -1 for
	// none of these.
	Nodes  []string `json:"nodes"`
	Chosen int      `json:"chosen"`
	Totals []int64  `json:"totals"`
	// Rows are by plugin; Scores are in the order of Nodes, weighted and normalized.
	Rows []ScoreRow `json:"rows"`
}

// ScoreRow is what a plugin gives each node.
type ScoreRow struct {
	Plugin string  `json:"plugin"`
	Scores []int64 `json:"scores"`
	// Raw are the scores before they are normalized and weighted.
	Raw []int64 `json:"raw,omitempty"`
}

// Scaling is what node groups do for a pod.
type Scaling struct {
	// NotPlanned is why no nodes are bought for it for the time being, NextPlan when the next plan is.
	NotPlanned string    `json:"notPlanned,omitempty"`
	NextPlan   time.Time `json:"nextPlan,omitzero"`
	// Event is the message of the last event about a scale-up.
	Event   string      `json:"event,omitempty"`
	Ordered *Order      `json:"ordered,omitempty"`
	Coming  *ComingNode `json:"coming,omitempty"`
	// Weighed says what it does that could preempt, in a sentence.
	Weighed string `json:"weighed,omitempty"`
	// Weighing is what was compared for that.
	Weighing *Weighing `json:"weighing,omitempty"`
	// Groups has an answer for each node group, by name.
	Groups []GroupAnswer `json:"groups,omitempty"`
}

// Weighing is what it costs a pod to preempt, and what to wait for a node. Costs are in the unit of prices.
type Weighing struct {
	Policy string `json:"policy"`
	Chosen string `json:"chosen"`
	Why    string `json:"why,omitempty"`
	// Preempt is nil when its cost isn't known, and Node when no node is in question.
	Preempt *PreemptionCost `json:"preempt,omitempty"`
	Node    *NodeCost       `json:"node,omitempty"`
}

// PreemptionCost is what it costs to have others leave a node.
type PreemptionCost struct {
	Node    string  `json:"node"`
	Victims int     `json:"victims"`
	Cost    float64 `json:"cost"`
}

// NodeCost is what it costs to wait for a node.
type NodeCost struct {
	Group string `json:"group"`
	// Price is the node's an hour, 0 when it isn't known, and Share the pod's part of it.
	Price  Price    `json:"price,omitempty"`
	Share  Share    `json:"share,omitempty"`
	Launch Duration `json:"launch"` // how long one takes
	Cost   float64  `json:"cost"`
}

// ComingNode is a node that a pod waits for.
type ComingNode struct {
	Group string `json:"group"`
	Node  string `json:"node,omitempty"`
	// Reserved says that its place there is kept, Stays that the node was to go and stays for it.
	Reserved bool `json:"reserved,omitempty"`
	Stays    bool `json:"stays,omitempty"`
	Expectation
}

// GroupAnswer is why a node group was or wasn't bought for a pod.
type GroupAnswer struct {
	Group string `json:"group"`
	// Answer is Bought, Limited, Rejects, NotChosen, NotNeeded or WouldTake.
	Answer  string      `json:"answer"`
	Reasons []string    `json:"reasons,omitempty"`
	Plugin  string      `json:"plugin,omitempty"`
	Missing []Shortfall `json:"missing,omitempty"`
	Detail  string      `json:"detail,omitempty"`
}

// TimelineEntry is something that happened to a pod.
type TimelineEntry struct {
	At time.Time `json:"at"`
	// Kind is Created, Seen, Bound, or the kind of a decision (whose number is Seq).
	Kind string `json:"kind"`
	Text string `json:"text,omitempty"`
	Seq  uint64 `json:"seq,omitempty"`
}
