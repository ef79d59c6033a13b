package step

import "time"

// This file holds what a shadow reports about nodes: which of them it and the other autoscaler both
// buy or remove, and which only one of them does.

// NodeVerdict says who bought or removed nodes, or would have.
type NodeVerdict string

// The verdicts.
const (
	BoughtByBoth       NodeVerdict = "boughtByBoth"       // the group grew when Berth would have had it grow, or its pods needed the node
	BoughtOnlyByBerth  NodeVerdict = "boughtOnlyByBerth"  // Berth would have bought it, and the group didn't grow in time
	BoughtOnlyByOther  NodeVerdict = "boughtOnlyByOther"  // the group grew, and Berth wouldn't have had it grow
	RemovedByBoth      NodeVerdict = "removedByBoth"      // the node went after Berth would have begun to remove it
	RemovedOnlyByBerth NodeVerdict = "removedOnlyByBerth" // Berth would have removed it, and it stayed
	RemovedOnlyByOther NodeVerdict = "removedOnlyByOther" // the node went, and Berth would have kept it, or not removed it yet
)

// NodeVerdicts are all of them, in the order in which people read them.
var NodeVerdicts = []NodeVerdict{BoughtByBoth, BoughtOnlyByBerth, BoughtOnlyByOther, RemovedByBoth, RemovedOnlyByBerth, RemovedOnlyByOther}

// OfBoth reports whether both did it.
func (v NodeVerdict) OfBoth() bool { return v == BoughtByBoth || v == RemovedByBoth }

// NodeComparison is what a shadow finds of nodes of one group that are bought together, or of
// one node that is removed.
type NodeComparison struct {
	Time    time.Time   `json:"time"` // when the verdict was found
	Verdict NodeVerdict `json:"verdict"`
	Group   string      `json:"group"`
	// Nodes is 1 for a removal.
	Nodes int     `json:"nodes"`
	Node  string  `json:"node,omitempty"`  // of a removal
	Price float64 `json:"price,omitempty"` // of all these nodes in an hour; 0 when it isn't known
	// Wished is when Berth would have bought or removed, the zero time when it wouldn't have.
	Wished time.Time `json:"wished,omitzero"`
	// Ahead is how much earlier that was than when the other's deed was seen; 0 unless both did it,
	// and 0 when the other was sooner.
	Ahead time.Duration `json:"ahead,omitempty"`
	// Pods are some of those that Berth would have bought the nodes for, by name.
	Pods []string `json:"pods,omitempty"`
	// Reason explains the verdict, for people only.
	Reason string `json:"reason,omitempty"`
}
