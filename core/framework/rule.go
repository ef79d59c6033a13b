package framework

import "github.com/berthproject/berth/core/cluster"

// The two kinds of rules that a plugin makes for one class, and what else they may
// implement. Which kind a rule is decides what its answers cost:
//
// A local rule is evaluated once for each touched node, and its answer serves all
// classes of equal local signature. A group rule is asked at each decision, about a
// few groups instead of all nodes, since what it reads may have changed anywhere.
//
// Rules run on the hot path: EvalNode, StaticKey, HostKey, Filter and Score don't
// allocate. Only Explain, which is for people, may be slow.

// MaxScore is the highest score a rule gives, before its weight. The lowest is 0.
const MaxScore = 100

// Rules is what a plugin has to say about a class; either part may be nil. If both
// score, their scores add up.
type Rules struct {
	Local LocalRule
	Group GroupRule
}

// Aspects are the parts of a node that a local rule reads.
type Aspects uint8

// ReadsObject covers the Node object, ReadsPods what is placed on the node. A rule
// that reads only the object isn't evaluated when a pod comes or goes.
const (
	ReadsObject Aspects = 1 << iota
	ReadsPods
)

// LocalRule answers for one node at a time. It reads that node and what of the pod was
// signed as local. Of the state's other objects it may read those whose change
// touches every node that its answer changes for (cluster.NodeTouched).
type LocalRule interface {
	// Reads returns the same for the life of the rule.
	Reads() Aspects
	// EvalNode returns a code and a final score, 0 to MaxScore. It doesn't
	// allocate, and several goroutines may call it for different nodes. The score
	// is only used when the code is OK.
	EvalNode(n *cluster.Node) (Code, int64)
	// Explain says why EvalNode didn't return OK.
	Explain(n *cluster.Node) *Reason
}

// Detailer is implemented by local rules that can tell people more about a node which they reject than
// kube-scheduler's message says.
type Detailer interface {
	// Detail says what the node lacks, in words for people; "" when there is no more to say. It may be
	// slow, and leaves out the node's name: nodes that lack the same have equal texts.
	Detail(n *cluster.Node) string
}

// ManyNodesRule is implemented by local rules that are asked about many nodes in a row for less than
// about one at a time. What EvalNode returns is what both must say.
type ManyNodesRule interface {
	LocalRule
	// EvalNodes evaluates each node nodes[i] for which rejected[i] is false: it sets rejected[i]
	// when the code isn't OK, and otherwise adds weight times the score to scores[i]. The lists are of
	// one length. As EvalNode it doesn't allocate, and several goroutines may call it for
	// different nodes.
	EvalNodes(nodes []*cluster.Node, weight int32, scores []int32, rejected []bool)
}

// Narrower is implemented by local rules that may name the nodes to which they keep the
// class, as a PreFilterResult does in kube-scheduler. All others are left out before any
// rule is asked about them, so that a class with few names costs as much as these nodes,
// and people read of the others that the plugin isn't satisfied.
type Narrower interface {
	// NarrowsTo returns the names, sorted and each once, or nil when the rule names no
	// nodes. There needn't be nodes of these names. It returns the same for the life of
	// the rule, and EvalNode rejects every other node.
	NarrowsTo() []string
}

// Scorer is implemented by local rules whose score of a node that they reject
// isn't 0. It is asked where the rule is enabled for scores only (OnlyScores).
type Scorer interface{ ScoreNode(n *cluster.Node) int64 }

// GroupRule answers by what is elsewhere, or scores nodes relative to one
// another. Nodes that none of its keys tells apart form a group and get one answer.
type GroupRule interface {
	// TopologyKeys are the keys whose domains tell groups apart. A key with
	// about as many domains as nodes belongs into HostFacts instead.
	TopologyKeys() []string
	// StaticKey is a raw score of the node's object that awaits normalising, or
	// anything else of the object that tells groups apart.
	StaticKey(n *cluster.NodeBasics) int32
	// HostFacts are the facts that HostKey reads: nodes in domains where all
	// of them are zero have HostKey 0.
	HostFacts() []*cluster.Fact
	// HostKey is what tells single nodes apart, 0 for nearly all. The engine
	// evaluates nodes where it isn't 0 (exceptional nodes) one by one.
	HostKey(n cluster.NodeIndex) int32
	// Filter sets out[i] for every group that has candidates. The answer for one
	// group doesn't depend on which other groups there are.
	Filter(g *Groups, out []Code)
	// Score adds weight times a score of 0 to MaxScore to out[i] for every group
	// that has candidates. Groups without must not influence the scores of others;
	// what out holds for them means nothing.
	Score(g *Groups, weight int64, out []int64)
	// Explain says why Filter rejected the i-th group.
	Explain(g *Groups, i int) *Reason
}

// ManyStaticKeys is implemented by group rules that read the static keys of many nodes in a row for
// less than one at a time.
type ManyStaticKeys interface {
	// StaticKeys sets out[i] to the StaticKey of nodes[i]. The lists are of one length.
	StaticKeys(nodes []*cluster.Node, out []int32)
}

// NeverFilters is implemented by group rules that may never reject anything for a
// class. If NeverFilters returns true, which it does for the life of the rule or
// never, the engine needn't call Filter, and asks for no hint.
type NeverFilters interface{ NeverFilters() bool }

// Excluder is implemented by group rules that reject every node where one of some host facts
// isn't zero, whatever else holds there. The engine leaves such nodes out without evaluating them.
type Excluder interface {
	// Excluding returns those of HostFacts, the same for the life of the rule.
	Excluding() []*cluster.Fact
}

// Releaser is implemented by rules that hold facts. Release gives them back: the
// engine calls it once, when it drops the rule.
type Releaser interface{ Release(*cluster.State) }

// RawScorer is implemented by group rules whose Score normalises. What they
// normalise is shown to people.
type RawScorer interface {
	// Raw sets out[i] to the score before normalising.
	Raw(g *Groups, out []int64)
}

// PodReader is implemented by group rules that can say which pods matter to them. Without it
// every pod may. A node with nominated pods that matter to no rule is evaluated without
// placing these anywhere.
type PodReader interface {
	// ReadsPod reports whether Filter may say something else of some node when the pod is
	// placed on one or taken off.
	ReadsPod(p *cluster.Pod) bool
}

// Hinter is implemented by group rules that can say which changes may turn
// their rejection of the class around on nodes other than the touched one.
// Without it every change may. Local rules need no hint: whether the touched
// node would now take the class is in the engine's cache.
type Hinter interface {
	Hint(change *cluster.Change) (mayHelp bool)
}
