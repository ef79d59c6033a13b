package v1alpha1

import "time"

// NodeState is where a node stands for scale-down.
type NodeState string

// The states, as berth explain node has them.
const (
	Stays       NodeState = "Stays"     // the last plan kept it, for Reason
	Candidate   NodeState = "Candidate" // it could go
	NodeLeaving NodeState = "Leaving"   // it is on its way out
	Unknown     NodeState = "Unknown"   // no plan has looked at it
)

// NodeList is a page of nodes.
type NodeList struct {
	List
	Items []Node `json:"items"`
}

// Node is a node in one row.
type Node struct {
	Name  string `json:"name"`
	Group string `json:"group,omitempty"` // "" when it is in none
	// InstanceType, Zone, CapacityType (spot, on-demand) and Arch are labels of the node.
	InstanceType string    `json:"instanceType,omitempty"`
	Zone         string    `json:"zone,omitempty"`
	CapacityType string    `json:"capacityType,omitempty"`
	Arch         string    `json:"arch,omitempty"`
	Created      time.Time `json:"created,omitzero"`
	// Ready is the node's condition; a ready node may be cordoned (Unschedulable) all the same.
	Ready         bool  `json:"ready"`
	Unschedulable bool  `json:"unschedulable,omitempty"`
	Price         Price `json:"price,omitempty"`
	// State and Reason are for scale-down, "" when Berth only schedules.
	State  NodeState `json:"state,omitempty"`
	Reason string    `json:"reason,omitempty"`
	// Pod keeps it, as namespace/name.
	Pod string `json:"pod,omitempty"`
	// Step is how far it is on its way out.
	Step string `json:"step,omitempty"`
	// Pods counts all pods on it, those of DaemonSets and static pods included, and MaxPods is how many
	// it takes.
	Pods    int `json:"pods"`
	MaxPods int `json:"maxPods,omitempty"`
	// Resources are cpu and memory, then extended resources by name.
	Resources []ResourceUse `json:"resources"`
}

// NodeDetail is a node, and why it stays or how far it is on its way out.
type NodeDetail struct {
	At time.Time `json:"at"`
	Node
	Labels map[string]string `json:"labels,omitempty"`
	Taints []Taint           `json:"taints,omitempty"`
	// Detail explains Reason in a sentence.
	Detail string `json:"detail,omitempty"`
	// Utilization is the largest share of a resource that its pods request, by the last plan.
	Utilization *Share `json:"utilization,omitempty"`
	// Since is when it began to stay for this reason, or became a candidate; Looked when a plan last
	// tried to do without it; Due when a candidate's time has come; Planned when that plan was asked for.
	Since   time.Time `json:"since,omitzero"`
	Looked  time.Time `json:"looked,omitzero"`
	Due     time.Time `json:"due,omitzero"`
	Planned time.Time `json:"planned,omitzero"`
	// Changes say what would have it go, a line for each way.
	Changes []string `json:"changes,omitempty"`
	Leaving *Leaving `json:"leaving,omitempty"`
	// Blocks are all pods that keep it, and what would let each go.
	Blocks []Block `json:"blocks,omitempty"`
	// Moves are the pods that would have to leave it, with where they would go.
	Moves []Move `json:"moves,omitempty"`
	// WaitsFor have to end before it goes, and Awaits are to come to it.
	WaitsFor []string `json:"waitsFor,omitempty"`
	Awaits   []string `json:"awaits,omitempty"`
	// OnNode are the pods on it, by namespace and name.
	OnNode []Pod `json:"onNode"`
	// Hidden is how many pods of the lists above are left out, since the viewer may not read them.
	Hidden int `json:"hidden,omitempty"`
	// Decisions are the last about its removal, the oldest first.
	Decisions []Decision `json:"decisions"`
}

// Taint is a taint of a node.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// Block is a pod that keeps its node.
type Block struct {
	Pod string `json:"pod"` // namespace/name
	// Rule keeps it: DisruptionBudget, or one of the drain rules.
	Rule string `json:"rule"`
	// Why is in words that follow the pod's name.
	Why string `json:"why"`
	// Change says what would let it go; a command where one is enough.
	Change string `json:"change"`
}

// Move is a pod that has to leave a node, and where it would go.
type Move struct {
	Pod string `json:"pod"` // namespace/name
	// Node is "" when no node has room, for Why.
	Node string `json:"node,omitempty"`
	Why  string `json:"why,omitempty"`
}
