package v1alpha1

import "time"

// Shadow is what a shadow has compared.
type Shadow struct {
	At    time.Time `json:"at"`
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Compared are the pods that both schedulers have placed.
	Compared int `json:"compared"`
	// Agreement is the share of them on the same node or one that is as good, Allowed that on a node
	// that Berth's rules allow.
	Agreement Share `json:"agreement"`
	Allowed   Share `json:"allowed"`
	// Verdicts counts pods by verdict: same, equal, better, worse, notAllowed, onlyBerth.
	Verdicts []VerdictCount `json:"verdicts"`
	// Short is by how many points all nodes of the other scheduler score less than Berth's.
	Short int64 `json:"short"`
	// Overtaken are worse placements before which the cluster changed; JudgedAgain were found to be
	// allowed later; Waiting are pods that only Berth has placed so far; Doubted are to be judged again.
	Overtaken   int `json:"overtaken"`
	JudgedAgain int `json:"judgedAgain"`
	Waiting     int `json:"waiting"`
	Doubted     int `json:"doubted"`
	// Earlier compares with what Berth had decided before.
	Earlier ShadowEarlier `json:"earlier"`
	// Other and Berth are how long pods waited for a node.
	Other ShadowTimes `json:"other"`
	Berth ShadowTimes `json:"berth"`
	// Differences are the largest, and Workloads those by controller. Hidden are left out.
	Differences []ShadowDifference `json:"differences"`
	Hidden      int                `json:"hidden,omitempty"`
	// Nodes is nil of a shadow without a provider.
	Nodes *ShadowNodes `json:"nodes,omitempty"`
}

// VerdictCount is how many pods or nodes have a verdict.
type VerdictCount struct {
	Verdict string `json:"verdict"`
	Count   int    `json:"count"`
}

// ShadowEarlier compares the other's placements with what Berth had decided before it saw them.
type ShadowEarlier struct {
	Decided int `json:"decided"`
	NoNode  int `json:"noNode"`
	NotYet  int `json:"notYet"`
	Same    int `json:"same"`
	Equal   int `json:"equal"`
	Better  int `json:"better"`
	Worse   int `json:"worse"`
	NoMore  int `json:"noMore"`
}

// ShadowTimes are quantiles of how long so many pods waited.
type ShadowTimes struct {
	Pods int      `json:"pods"`
	P50  Duration `json:"p50"`
	P90  Duration `json:"p90"`
	P99  Duration `json:"p99"`
	Max  Duration `json:"max"`
}

// ShadowDifference is a pod that the two schedulers have placed differently.
type ShadowDifference struct {
	Time       time.Time     `json:"time"`
	Pod        string        `json:"pod"`
	Verdict    string        `json:"verdict"`
	Node       string        `json:"node,omitempty"`
	Score      int64         `json:"score,omitempty"`
	BerthNode  string        `json:"berthNode,omitempty"`
	BerthScore int64         `json:"berthScore,omitempty"`
	Plugin     string        `json:"plugin,omitempty"`
	Reason     string        `json:"reason,omitempty"`
	Scores     []PluginScore `json:"scores,omitempty"`
	// BerthScores are those of BerthNode.
	BerthScores []PluginScore `json:"berthScores,omitempty"`
	// Took is after how long the binding was observed, and Earlier what Berth had decided by then; nil for
	// nothing.
	Took    Duration        `json:"took"`
	Earlier *ShadowDecision `json:"earlier,omitempty"`
	// Later is how long after the binding the node was first found to be allowed, and Meanwhile how often a pod left
	// its node or a node came, changed or went before it.
	Later     *Duration `json:"later,omitempty"`
	Meanwhile uint64    `json:"meanwhile,omitempty"`
}

// ShadowDecision is what Berth had decided of a pod before it saw the other scheduler's binding.
type ShadowDecision struct {
	// Node is the one that Berth chose, "" for none, and Why says why it found none.
	Node string   `json:"node,omitempty"`
	Took Duration `json:"took"`
	Why  string   `json:"why,omitempty"`
	// Fits says that the node still had room when the binding was observed.
	Fits bool `json:"fits"`
	// Score was the node's when it was chosen, and Now is its score when the binding was observed.
	Score int64 `json:"score,omitempty"`
	Now   int64 `json:"now,omitempty"`
	// GaveUp says that Berth had stopped counting the pod as placed.
	GaveUp bool `json:"gaveUp,omitempty"`
}

// ShadowNodes is what a shadow has compared of nodes.
type ShadowNodes struct {
	Since time.Time `json:"since,omitzero"`
	// Verdicts counts nodes: boughtByBoth, boughtOnlyByBerth, boughtOnlyByOther, removedByBoth,
	// removedOnlyByBerth, removedOnlyByOther.
	Verdicts []VerdictCount `json:"verdicts"`
	// Buying and Removing are open. Early are the nodes that only the other has removed and Berth found to be
	// unneeded, too, but not for long enough; Again those that Berth would have removed and that were needed again.
	Buying   int `json:"buying"`
	Removing int `json:"removing"`
	Early    int `json:"early"`
	Again    int `json:"again"`
	// BoughtAhead and RemovedAhead are by how much Berth was sooner on the mean.
	BoughtAhead  Duration `json:"boughtAhead"`
	RemovedAhead Duration `json:"removedAhead"`
	// Cluster and Berth are node hours, and what they cost in all (not an hour).
	Cluster     ShadowHours            `json:"cluster"`
	Berth       ShadowHours            `json:"berth"`
	Unpriced    []string               `json:"unpriced,omitempty"`
	Differences []ShadowNodeDifference `json:"differences"`
}

// ShadowHours are node hours and their cost.
type ShadowHours struct {
	Hours float64 `json:"hours"`
	Cost  Price   `json:"cost"`
}

// ShadowNodeDifference is nodes that only one of the two has bought or removed.
type ShadowNodeDifference struct {
	Time    time.Time `json:"time"`
	Verdict string    `json:"verdict"`
	Group   string    `json:"group"`
	Nodes   int       `json:"nodes"`
	Node    string    `json:"node,omitempty"`
	Price   Price     `json:"price,omitempty"`
	Wished  time.Time `json:"wished,omitzero"`
	Reason  string    `json:"reason,omitempty"`
	// Pods are some of those that the nodes were for.
	Pods []string `json:"pods,omitempty"`
	// Ahead is by how much Berth would have been sooner.
	Ahead *Duration `json:"ahead,omitempty"`
}
