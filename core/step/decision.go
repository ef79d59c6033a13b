package step

import (
	"fmt"
	"strings"
	"time"

	"github.com/berthproject/berth/core/engine"
)

// DecisionKind says what was decided.
type DecisionKind string

// The kinds of decisions.
const (
	Placed           DecisionKind = "Placed"           // a pod got a node
	Expected         DecisionKind = "Expected"         // another scheduler is expected to place a pod there
	Waits            DecisionKind = "Waits"            // a pod was tried and found no node
	Preempts         DecisionKind = "Preempts"         // others have to leave a node for a pod
	PreemptionFailed DecisionKind = "PreemptionFailed" // they could not be told to
	Consults         DecisionKind = "Consults"         // extenders are asked about the nodes that would do
	Gated            DecisionKind = "Gated"            // a pod is held by its scheduling gates
	Permitting       DecisionKind = "Permitting"       // a pod that got a node waits for permission to be bound
	Permitted        DecisionKind = "Permitted"        // it has it
	Unplaced         DecisionKind = "Unplaced"         // a bind failed: the pod is off the node again
	Refused          DecisionKind = "Refused"          // a plugin was against a pod's node, or had it wait in vain
	ScaledUp         DecisionKind = "ScaledUp"         // nodes were ordered
	NotScaledUp      DecisionKind = "NotScaledUp"      // no group would help a pod
	ScaleUpFailed    DecisionKind = "ScaleUpFailed"    // an order came to nothing; the group backs off
	NodeTainted      DecisionKind = "NodeTainted"      // the removal of a node began
	NodeKept         DecisionKind = "NodeKept"         // it was called off
	NodeRemoved      DecisionKind = "NodeRemoved"      // the provider was asked to remove a node
	PodEvicted       DecisionKind = "PodEvicted"       // a pod was asked to leave a node that goes
	MachineRemoved   DecisionKind = "MachineRemoved"   // a machine that never became a node goes
	PlanRefused      DecisionKind = "PlanRefused"      // a plan answers no open request, or was made at a position that can't be: a defect
	TargetLowered    DecisionKind = "TargetLowered"    // machines that the provider didn't make are given up
)

// Decision is one entry of the decision ledger. The zero value of a field
// means that it doesn't apply.
type Decision struct {
	Seq  uint64    `json:"seq"` // from 1 on, without gaps
	Time time.Time `json:"time"`
	// Position is how many changes of the cluster the decision has seen.
	Position uint64       `json:"position"`
	Kind     DecisionKind `json:"kind"`
	Pod      string       `json:"pod,omitempty"` // namespace/name
	Node     string       `json:"node,omitempty"`
	Group    string       `json:"group,omitempty"`
	Nodes    int          `json:"nodes,omitempty"`
	Score    int64        `json:"score,omitempty"`
	// Scores are what made up the score, by plugin, weighted.
	Scores []engine.PluginScore `json:"scores,omitempty"`
	// RunnerUp is the best of the other nodes.
	RunnerUp *RunnerUp `json:"runnerUp,omitempty"`
	// Rejected says by which reasons nodes were left out, when all were.
	Rejected []Why    `json:"rejected,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Victims  []string `json:"victims,omitempty"` // namespace/name
	Profile  string   `json:"profile,omitempty"` // schedulerName
}

// RunnerUp is a node that another was better than.
type RunnerUp struct {
	Node  string `json:"node"`
	Score int64  `json:"score"`
}

func (d *Decision) String() string {
	out := string(d.Kind)
	for _, part := range []struct{ name, value string }{{"pod", d.Pod}, {"node", d.Node}, {"group", d.Group}} {
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

// Why is one reason for which nodes are rejected.
type Why struct {
	Plugin  string     `json:"plugin"`
	Message string     `json:"message"`
	Nodes   int        `json:"nodes"`
	Short   *Shortfall `json:"short,omitempty"`
}

// Shortfall is how much of a resource is missing on the node that comes
// nearest, in the resource's base unit.
type Shortfall struct {
	Resource  string `json:"resource"`
	Needed    int64  `json:"needed"`
	Available int64  `json:"available"`
	Node      string `json:"node"`
}
