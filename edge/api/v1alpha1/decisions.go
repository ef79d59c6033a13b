package v1alpha1

import "time"

// DecisionList is a page of the decision ledger, the oldest first.
type DecisionList struct {
	At    time.Time `json:"at"`
	Epoch string    `json:"epoch"`
	// First and Last are the numbers of the oldest and the newest decision that are kept.
	First uint64     `json:"first"`
	Last  uint64     `json:"last"`
	Items []Decision `json:"items"`
	// More says that decisions that match are older than the first of Items: ask with before= its seq.
	More bool `json:"more,omitempty"`
}

// Decision is one entry of the decision ledger.
type Decision struct {
	Seq uint64 `json:"seq"` // from 1 on, of one epoch
	// Epoch is that of Seq, where the decision is asked for alone; a list has it once.
	Epoch string    `json:"epoch,omitempty"`
	Time  time.Time `json:"time"`
	Kind  string    `json:"kind"`
	// Text is the decision in one line.
	Text     string `json:"text,omitempty"`
	Pod      string `json:"pod,omitempty"` // namespace/name
	Node     string `json:"node,omitempty"`
	Group    string `json:"group,omitempty"`
	Nodes    int    `json:"nodes,omitempty"`
	PodGroup string `json:"podGroup,omitempty"` // namespace/name
	Members  int    `json:"members,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Profile is the pod's schedulerName.
	Profile string   `json:"profile,omitempty"`
	Victims []string `json:"victims,omitempty"`
	// Score is that of Node, RunnerUp the best other node's. Scores are by plugin.
	Score    int64         `json:"score,omitempty"`
	Scores   []PluginScore `json:"scores,omitempty"`
	RunnerUp *RunnerUp     `json:"runnerUp,omitempty"`
	// Rejections are why nodes were rejected, when all were.
	Rejections []Rejection `json:"rejections,omitempty"`
	Choice     *Choice     `json:"choice,omitempty"`
	// Headroom is the object that asks for headroom.
	Headroom string `json:"headroom,omitempty"`
	// Hidden says that what it is about is left out, since the viewer may not read it.
	Hidden bool `json:"hidden,omitempty"`
}

// PluginScore is a part of a score, weighted.
type PluginScore struct {
	Plugin string `json:"plugin"`
	Score  int64  `json:"score"`
}

// RunnerUp is the best of the nodes that weren't chosen.
type RunnerUp struct {
	Node  string `json:"node"`
	Score int64  `json:"score"`
}

// Run is a number of decisions of one kind that were made one after the other: the last of them, and how
// many came before it.
type Run struct {
	Decision
	More int `json:"more,omitempty"`
}

// The events of the stream (text/event-stream). The field id is EPOCH.SEQ: an EventSource sends it
// back as Last-Event-ID, and the stream goes on after it, if it still can.
const (
	// EventOverview has an Overview as its data. It comes at the start, and at a tick when something
	// has changed.
	EventOverview = "overview"
	// EventDecisions has StreamedDecisions.
	EventDecisions = "decisions"
	// EventEnd has an Error, and is the last: this instance doesn't lead any more, or ends.
	EventEnd = "end"
)

// StreamedDecisions are decisions since the last event.
type StreamedDecisions struct {
	Items []Decision `json:"items"`
	// Dropped is how many are left out before Items: the viewer was too slow, or they are too many.
	Dropped uint64 `json:"dropped,omitempty"`
	// Reset says that the ledger is another one than before: Items of before are of another epoch.
	Reset bool `json:"reset,omitempty"`
}
