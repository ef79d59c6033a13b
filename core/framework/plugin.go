package framework

import "github.com/berthproject/berth/core/cluster"

// MaxScore is the highest score a rule gives, before its weight.
const MaxScore = 100

// Code is a verdict on a node.
type Code uint8

// The verdicts. Final means that taking pods away from the node wouldn't help
// (kube-scheduler's UnschedulableAndUnresolvable).
const (
	OK Code = iota
	Reject
	Final
)

// Plugin is a placement rule before it has seen a pod.
type Plugin interface {
	Name() string
	// Sign appends everything of the pod that the rule reads: to local what
	// its LocalRule, its TopologyKeys and its StaticKey read, to group the
	// rest. Pods with equal signatures must get equal answers.
	Sign(pod *cluster.Pod, state *cluster.State, local, group *Signature)
	// For prepares the rule for a class, given one of its pods. A Reason
	// rejects the class on every node.
	For(pod *cluster.Pod, state *cluster.State) (Rules, *Reason)
}

// TermReader is implemented by plugins whose rules for a class depend on the
// pod affinity terms of placed pods: a new term that it reads for a pod makes
// the rules of the pod's class out of date.
type TermReader interface {
	ReadsTerm(pod *cluster.Pod, state *cluster.State, t *cluster.Term) bool
}

// Reclassifier is implemented by plugins whose signature of a pod reads more of the
// cluster than terms of placed pods and namespaces.
type Reclassifier interface {
	// Reclassifies returns which pods may have another signature after the change, nil
	// when none has.
	Reclassifies(c *cluster.Change, state *cluster.State) func(*cluster.Pod) bool
}

// Assumer is implemented by plugins that take things of the cluster for a pod
// that gets a node, so that the next pod sees them taken. It is the part of
// kube-scheduler's Reserve and PreBind that a what-if has, too: rolling the state
// back takes it back.
type Assumer interface {
	// Assume puts into the state what the pod takes on the node. The objects
	// that it changes have to be written, and take effect, before the pod is
	// bound.
	Assume(pod *cluster.Pod, n *cluster.Node, state *cluster.State)
}

// Rules is what a plugin has to say about a class; either part may be nil.
type Rules struct {
	Local LocalRule
	Group GroupRule
}

// Aspects are the parts of a node that a local rule reads.
type Aspects uint8

// ReadsObject covers the Node object, ReadsPods what is placed on the node.
const (
	ReadsObject Aspects = 1 << iota
	ReadsPods
)

// LocalRule judges a node by itself. It reads one node and what of the pod was
// signed as local. Of the state's other objects it may read those whose change
// touches every node that it says something else of (cluster.NodeTouched).
type LocalRule interface {
	Reads() Aspects
	// EvalNode returns a verdict and a final score, 0 to MaxScore. It doesn't
	// allocate. The score is only used when the verdict is OK.
	EvalNode(n *cluster.Node) (Code, int64)
	// Explain says why EvalNode didn't return OK.
	Explain(n *cluster.Node) *Reason
}

// Narrower is a LocalRule that leaves nodes out before any rule looks at them,
// as a PreFilterResult does in kube-scheduler. It decides only whose reason is
// told: EvalNode rejects these nodes too.
type Narrower interface {
	Narrows(n *cluster.NodeInfo) bool
}

// GroupRule judges nodes by what is elsewhere, or scores them relative to one
// another. Nodes that no key tells apart form a group and get one answer.
type GroupRule interface {
	// TopologyKeys are the keys whose domains tell groups apart. A key with
	// about as many domains as nodes belongs into HostFacts instead.
	TopologyKeys() []string
	// StaticKey is a raw score of the node's object that awaits normalising.
	StaticKey(n *cluster.NodeInfo) int32
	// HostFacts are the facts that HostKey reads: nodes in domains where all
	// of them are zero have HostKey 0.
	HostFacts() []*cluster.Fact
	// HostKey is what tells single nodes apart, 0 for nearly all.
	HostKey(n cluster.NodeIndex) int32
	// Filter sets out[i] for every group that has candidates.
	Filter(g *Groups, out []Code)
	// Score adds weight times a score of 0 to MaxScore to out[i] for every group
	// that has candidates left. Those without mustn't count for it.
	Score(g *Groups, weight int64, out []int64)
	// Explain says why Filter rejected the i-th group.
	Explain(g *Groups, i int) *Reason
}

// NeverFilters is implemented by group rules that may never reject anything for a
// class, so that they needn't be asked.
type NeverFilters interface{ NeverFilters() bool }

// Releaser is implemented by rules that hold facts, to give them back.
type Releaser interface{ Release(*cluster.State) }

// RawScorer is implemented by group rules whose Score normalises, to show what.
type RawScorer interface {
	// Raw sets out[i] to the score before normalising.
	Raw(g *Groups, out []int64)
}

// Groups are the groups of nodes a GroupRule judges, as parallel slices.
type Groups struct {
	Nodes   []int32            // candidates in the group; of one with 0 the answers don't count
	Static  []int32            // the rule's StaticKey
	Host    []int32            // the rule's HostKey
	Domains [][]cluster.Domain // by topology key of the rule, then by group
}

// Len returns the number of groups.
func (g *Groups) Len() int { return len(g.Nodes) }

// Hinter is implemented by group rules that can say which changes may turn
// their rejection of the class around on nodes other than the touched one.
// Without it every change may. Local rules need no hint: whether the touched
// node would now take the class is in the engine's cache.
type Hinter interface {
	Hint(change *cluster.Change) (mayHelp bool)
}

// Waker is implemented by plugins that reject nodes, to tell people what wakes a
// pod that waits for them. It words what the hints and the column of local
// answers do.
type Waker interface{ WakesWhen() string }

// PreEnqueuer is implemented by plugins that keep pods out of the queue. A
// change of the pod itself is what ends it.
type PreEnqueuer interface {
	PreEnqueue(pod *cluster.Pod) *Reason
}

// Less orders pods for scheduling; it is the QueueSort plugin's.
type Less func(a, b *QueuedPod) bool

// QueuedPod is what a Less may look at.
type QueuedPod struct {
	Pod      *cluster.Pod
	Queued   int64 // when it was first queued, in nanoseconds
	Sequence uint64
}

// Reason is why a rule said no, with the quantity that fell short.
type Reason struct {
	Plugin   string
	Messages []string // each as kube-scheduler words it
	Final    bool     // taking pods away wouldn't help
	// OfPod says that nothing but a change of the pod itself can help. It is
	// for reasons that reject a class everywhere.
	OfPod    bool
	Deficits []Deficit
}

// Deficit is a resource that a node has too little of, in its base unit
// (milli-CPU, bytes, counts).
type Deficit struct {
	Resource          string
	Needed, Available int64
}
