package step

// This file holds the entries of the decision ledger. They are written for people, who
// read them as lines of JSON, and make up the digest: a field that is added, or a message
// that is changed, changes the digest of every run in which it occurs.

import (
	"fmt"
	"strings"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/weighing"
)

// DecisionKind tells decisions apart by what was decided.
type DecisionKind string

// The kinds of decisions.
const (
	Placed             DecisionKind = "Placed"             // a pod got a node
	Expected           DecisionKind = "Expected"           // another scheduler is expected to place a pod there
	GroupPlaced        DecisionKind = "GroupPlaced"        // enough members of a pod group got nodes; Placed says where each is
	GroupWaits         DecisionKind = "GroupWaits"         // a pod group was tried, and too few members found nodes
	GroupPlanned       DecisionKind = "GroupPlanned"       // a plan has places for enough members of a pod group, on nodes that are bought or coming
	GroupNotPlanned    DecisionKind = "GroupNotPlanned"    // a plan hasn't, and nothing is bought for the group
	Waits              DecisionKind = "Waits"              // a pod was tried and found no node
	Failed             DecisionKind = "Failed"             // a pod was tried, and an error of a rule ended the attempt
	Weighed            DecisionKind = "Weighed"            // a pod that could preempt waits for a node instead
	Preempts           DecisionKind = "Preempts"           // pods are asked to leave a node for another pod
	PreemptionFailed   DecisionKind = "PreemptionFailed"   // a victim could not be asked to leave
	Consults           DecisionKind = "Consults"           // extenders are asked about the nodes that the rules allow
	Gated              DecisionKind = "Gated"              // a plugin keeps a pod out of the queue
	Permitting         DecisionKind = "Permitting"         // a pod that got a node waits for permission to be bound
	Permitted          DecisionKind = "Permitted"          // a pod has all permissions that it waited for
	RoomTakenTwice     DecisionKind = "RoomTakenTwice"     // another scheduler's pod is on a node whose pods now request more than it has
	Unplaced           DecisionKind = "Unplaced"           // a bind failed: the pod is off the node again
	Refused            DecisionKind = "Refused"            // a plugin refused a pod's node, or didn't give permission in time
	ScaledUp           DecisionKind = "ScaledUp"           // nodes were ordered
	NotScaledUp        DecisionKind = "NotScaledUp"        // no node group would help a pod
	Reserved           DecisionKind = "Reserved"           // the place on a new node is kept for the pods that it was ordered for
	PlaceFreed         DecisionKind = "PlaceFreed"         // the pods that a node was ordered for have got other nodes, or are gone, before one of them came to it
	OrderCancelled     DecisionKind = "OrderCancelled"     // nodes that are coming and that nobody needs any more are given up
	ScaleUpUnanswered  DecisionKind = "ScaleUpUnanswered"  // an order had no answer, and the provider's list shows that nothing was ordered: another plan may order again
	ScaleUpFailed      DecisionKind = "ScaleUpFailed"      // an order failed; the node group backs off
	NodeTainted        DecisionKind = "NodeTainted"        // the deletion of a node began
	NodeUnneeded       DecisionKind = "NodeUnneeded"       // a node could be removed, together with all others of which this was said
	NodeNeeded         DecisionKind = "NodeNeeded"         // a node of which that was said can't be removed any more
	NodeStays          DecisionKind = "NodeStays"          // a node can't be removed for a reason that somebody can act on, or is due and its pods' homes are taken; without a node: none can be for the time being
	NodeKept           DecisionKind = "NodeKept"           // the deletion failed, and the node stays
	NodeRecalled       DecisionKind = "NodeRecalled"       // the deletion was cancelled for pods that fit on the node, and it stays
	NodeRemoved        DecisionKind = "NodeRemoved"        // the provider was asked to delete a node
	RemovalRepeated    DecisionKind = "RemovalRepeated"    // the provider was asked again to delete a node, since its answer never came and it lists the instance still
	PodEvicted         DecisionKind = "PodEvicted"         // a pod was asked to leave a node that is on its way out
	PodSurged          DecisionKind = "PodSurged"          // a pod's Deployment was asked to make its successor before the pod leaves such a node
	InstanceRemoved    DecisionKind = "InstanceRemoved"    // the provider was asked to delete an instance that isn't a node
	PlanRefused        DecisionKind = "PlanRefused"        // a plan answers no open request, or was made at a position that can't be; a defect of the driver
	PlanCut            DecisionKind = "PlanCut"            // a plan had taken long enough; the next goes on with the pods that it left
	TargetLowered      DecisionKind = "TargetLowered"      // instances that the provider hasn't made are given up
	RoomKept           DecisionKind = "RoomKept"           // a node has room for a stand-in, and it is kept there
	RoomMissing        DecisionKind = "RoomMissing"        // a stand-in was tried, and no node has room for it
	RoomLost           DecisionKind = "RoomLost"           // a stand-in's node doesn't keep room for it any more
	HomeKept           DecisionKind = "HomeKept"           // room for the replacement of a pod that is to be evicted is kept on a node
	HomeTaken          DecisionKind = "HomeTaken"          // a pod replaces one that was evicted, and has the room kept for it, if there is some
	HomeLost           DecisionKind = "HomeLost"           // the node doesn't keep the room any more
	HomeEnded          DecisionKind = "HomeEnded"          // no room is kept for the replacement any more, and it hasn't come for it
	NodeInterrupted    DecisionKind = "NodeInterrupted"    // the cloud is about to take a node: room is kept for its pods, and bought where there is none
	InterruptionEnded  DecisionKind = "InterruptionEnded"  // the node is gone, its mark is, or the cloud hasn't taken it for long
	HeadroomSet        DecisionKind = "HeadroomSet"        // how much room is kept for whom
	HeadroomRefused    DecisionKind = "HeadroomRefused"    // an object asks for headroom that can't be made out
	Booked             DecisionKind = "Booked"             // room for a ProvisioningRequest was found, or is being bought
	NotBooked          DecisionKind = "NotBooked"          // there is no room for all pods of a ProvisioningRequest
	Consolidates       DecisionKind = "Consolidates"       // nodes are to be replaced by cheaper ones, which are ordered
	ConsolidationEnded DecisionKind = "ConsolidationEnded" // these nodes are gone, or it was given up
	BookingEnded       DecisionKind = "BookingEnded"       // the time of a booking is over, or it was given up
)

// Decision is one entry of the decision ledger. The zero value of a field
// means that it doesn't apply.
type Decision struct {
	Seq  uint64    `json:"seq"` // from 1 on, without gaps
	Time time.Time `json:"time"`
	// Position is the seq up to which the decision has seen the journal. The digest leaves
	// it out.
	Position uint64 `json:"position"`
	// Kind says which of the fields below are set, and what Reason means.
	Kind DecisionKind `json:"kind"`
	Pod  string       `json:"pod,omitempty"` // namespace/name
	Node string       `json:"node,omitempty"`
	// Group is a node group by ID. Nodes is how many of its nodes the decision is about.
	Group string `json:"group,omitempty"`
	Nodes int    `json:"nodes,omitempty"`
	// Score is that of Node: the sum of Scores.
	Score int64 `json:"score,omitempty"`
	// Scores are what made up the score, by plugin, weighted.
	Scores []engine.PluginScore `json:"scores,omitempty"`
	// RunnerUp is nil when no other node was feasible.
	RunnerUp *RunnerUp `json:"runnerUp,omitempty"`
	// Rejected are the reasons for which nodes were rejected, when all were.
	Rejected []Why `json:"rejected,omitempty"`
	// Reason is text for people, and part of the digest.
	Reason  string   `json:"reason,omitempty"`
	Victims []string `json:"victims,omitempty"` // namespace/name
	// Disruptions is how many units of pod groups the victims are: all members of a group that goes
	// whole are one unit, and each member of another group is one. Pods without a group don't count.
	// The digest leaves it out: it follows from Victims.
	Disruptions int    `json:"disruptions,omitempty"`
	Profile     string `json:"profile,omitempty"` // schedulerName
	// Choice is how the group of ScaledUp was chosen. The digest leaves it out: what was
	// decided is in the other fields.
	Choice *autoscaler.Choice `json:"choice,omitempty"`
	// Weighed is of a pod that could preempt: what it does, and what else it could have done.
	// The digest leaves it out, too.
	Weighed *weighing.Result `json:"weighed,omitempty"`
	// Headroom is the object that asks for headroom, as kind namespace/name.
	Headroom string `json:"headroom,omitempty"`
	// PodGroup is namespace/name, and Members how many of its members were decided on.
	PodGroup string `json:"podGroup,omitempty"`
	Members  int    `json:"members,omitempty"`
}

// RunnerUp is the best of the nodes that weren't chosen.
type RunnerUp struct {
	// Score is weighted like Decision.Score: the difference is by how much Node lost.
	Node  string `json:"node"`
	Score int64  `json:"score"`
}

// String returns the decision in one line, without its time, score and reasons.
func (d *Decision) String() string {
	out := string(d.Kind)
	for _, part := range []struct{ name, value string }{{"pod", d.Pod}, {"node", d.Node}, {"group", d.Group}, {"pod group", d.PodGroup}, {"for", d.Headroom}} {
		if part.value != "" {
			out += " " + part.name + " " + part.value
		}
	}
	if d.Nodes != 0 {
		out += fmt.Sprintf(" nodes %d", d.Nodes)
	}
	if d.Victims != nil {
		out += " victims " + strings.Join(d.Victims, ", ")
	}
	if d.Reason != "" {
		out += ": " + d.Reason
	}
	return out
}

// Why is a reason for which nodes were rejected.
type Why struct {
	// Plugin and Message are kube-scheduler's; together they are unique in a list.
	Plugin  string `json:"plugin"`
	Message string `json:"message"`
	// Nodes is how many nodes have this reason. A node may be counted under several reasons of the
	// plugin that rejects it, so the numbers may add up to more than there are nodes.
	Nodes int `json:"nodes"`
	// Short is nil when the reason isn't a lack of a resource.
	Short *Shortfall `json:"short,omitempty"`
}

// Shortfall is how much of a resource is missing on the node that comes
// nearest, in the resource's base unit.
type Shortfall struct {
	// Needed and Available are in thousandths for cpu, in bytes for memory and storage, and in units
	// for everything else.
	Resource  string `json:"resource"`
	Needed    int64  `json:"needed"`
	Available int64  `json:"available"`
	Node      string `json:"node"`
}

// WhyRejected lists the reasons of a diagnosis. Reasons that hold for every node come last, with
// the number of all nodes.
func WhyRejected(d *engine.Diagnosis) []Why {
	out := make([]Why, 0, len(d.Counts())+1)
	for _, n := range d.Counts() {
		why := Why{Plugin: n.Plugin, Message: n.Message, Nodes: n.Nodes}
		if s := n.Nearest; s != nil {
			why.Short = &Shortfall{Resource: s.Resource, Needed: s.Needed, Available: s.Available, Node: s.Node}
		}
		out = append(out, why)
	}
	if e := d.Everywhere(); e != nil {
		for _, m := range e.Messages {
			out = append(out, Why{Plugin: e.Plugin, Message: m, Nodes: d.Nodes()})
		}
	}
	return out
}
