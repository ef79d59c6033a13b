package step

import (
	"time"

	"github.com/berthproject/berth/core/engine"
)

// This file holds what a shadow reports about each pod: how the node that the other scheduler has
// put it on compares with Berth's choice.

// Verdict is how the node of the other scheduler compares with the one that Berth chooses in
// the state of the cluster in which the binding is seen, by the scores of the pod's profile. The
// other scheduler has decided earlier, in a state that nobody else knows.
type Verdict string

// The verdicts.
const (
	SameNode    Verdict = "same"       // it is that node, or the one that Berth had decided for
	EquallyGood Verdict = "equal"      // another node with the same score
	Better      Verdict = "better"     // a node with a higher score: Berth keeps to a nomination without scoring
	Worse       Verdict = "worse"      // a node with a lower score
	NotAllowed  Verdict = "notAllowed" // a node that a rule of the profile rejects
	OnlyBerth   Verdict = "onlyBerth"  // the other scheduler hasn't placed the pod, and Berth has
)

// Verdicts are all verdicts, in the order in which people read them.
var Verdicts = []Verdict{SameNode, EquallyGood, Better, Worse, NotAllowed, OnlyBerth}

// Compared reports whether the verdict is about a pod that the other scheduler has placed.
func (v Verdict) Compared() bool { return v != OnlyBerth }

// Comparison is what a shadow finds of one pod.
type Comparison struct {
	Time    time.Time `json:"time"`              // when the verdict was found
	Pod     string    `json:"pod"`               // namespace/name
	Profile string    `json:"profile,omitempty"` // schedulerName
	Verdict Verdict   `json:"verdict"`
	// Node is where the other scheduler has put the pod, and Score what the node scores; Node
	// is "" of OnlyBerth, and Score 0 of a node that isn't allowed.
	Node  string `json:"node,omitempty"`
	Score int64  `json:"score,omitempty"`
	// BerthNode is Berth's choice in the same state, "" when it finds none there. Of
	// OnlyBerth it is where Berth has put the pod.
	BerthNode  string `json:"berthNode,omitempty"`
	BerthScore int64  `json:"berthScore,omitempty"`
	// Took is how long after the pod was first seen its binding was seen, 0 of OnlyBerth.
	Took time.Duration `json:"took,omitempty"`
	// Earlier is what Berth had decided before the binding was seen, nil for nothing.
	Earlier *Earlier `json:"earlier,omitempty"`
	// Reason is why the node isn't allowed, or why the pod is Berth's alone, and Plugin whose
	// rule rejects the node.
	Reason string `json:"reason,omitempty"`
	Plugin string `json:"plugin,omitempty"`
	// Later is how long after the binding was seen the node was first found to be allowed: the
	// bindings that it depends on were seen after it. 0 when it was allowed at once.
	Later time.Duration `json:"later,omitempty"`
	// Meanwhile is how often, between when the pod was first seen and its binding, a pod left its
	// node or a node came, changed or went: the other scheduler may have decided before.
	Meanwhile uint64 `json:"meanwhile,omitempty"`
	// Scores and BerthScores are what makes up the two scores, of the largest differences
	// only.
	Scores      []engine.PluginScore `json:"scores,omitempty"`
	BerthScores []engine.PluginScore `json:"berthScores,omitempty"`
}

// Earlier is what Berth decided of a pod at its own time, in a cluster where its own earlier
// decisions had come true.
type Earlier struct {
	Node string `json:"node,omitempty"` // "" when it found none
	// Score is that of Node in the cluster as Berth had it then, weighted.
	Score  int64         `json:"score,omitempty"`
	Took   time.Duration `json:"took"`             // from when the pod was first seen until it was decided
	Why    string        `json:"why,omitempty"`    // why it found no node
	Fits   bool          `json:"fits,omitempty"`   // the node takes the pod in the state in which the verdict was found, too
	Now    int64         `json:"now,omitempty"`    // its score there
	GaveUp bool          `json:"gaveUp,omitempty"` // Berth had stopped counting the pod as placed: the other scheduler hadn't placed it in time
}

// Points returns by how much the other's node scores less than Berth's choice, 0 when it
// doesn't.
func (c *Comparison) Points() int64 {
	if c.Verdict != Worse {
		return 0
	}
	return c.BerthScore - c.Score
}
