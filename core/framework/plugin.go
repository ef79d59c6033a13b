package framework

import (
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berthproject/berth/core/cluster"
)

// What a placement rule implements: Plugin always, and of the interfaces below it
// those that apply. The engine and the queue look for them by type assertion, so a
// plugin that wraps another has to pass them on (OnlyScores does).
//
// A plugin has no state of its own: everything that it knows about a pod or the
// cluster it reads when it is asked. The same questions about the same state give the
// same answers.

// Plugin is a placement rule before it has seen a pod.
type Plugin interface {
	// Name is kube-scheduler's name of the plugin, which reasons, metrics and
	// configuration use.
	Name() string
	// Sign appends everything of the pod that the rule reads: to local what
	// its LocalRule, its TopologyKeys and its StaticKey read, to group the
	// rest. Pods of equal signatures are one class and get the same answers.
	// Whatever Sign reads of the state must be what Reclassifier reports, terms of
	// placed pods or namespaces: only their changes have a pod signed again.
	Sign(pod *cluster.Pod, state *cluster.State, local, group *Signature)
	// For prepares the rule for a class, given one of its pods. A Reason
	// rejects the class on every node.
	For(pod *cluster.Pod, state *cluster.State) (Rules, *Reason)
}

// TermReader is implemented by plugins whose rules for a class depend on the
// pod affinity terms of placed pods: after a new term that ReadsTerm is true of,
// the engine calls For again for the pod's class.
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
	// Release is the inverse of Assume: it gives back what the pod has taken and
	// what is free once the pod has ended. A what-if that takes a pod off its
	// node calls it; the state then is as the pod's replacement finds it. It
	// changes nothing when it is called again.
	Release(pod *cluster.Pod, state *cluster.State)
}

// Claimer is implemented by the plugin that takes devices for pods by resource claims.
type Claimer interface {
	Plugin
	PreEnqueuer
	// ExtendedResources returns which devices of the claim that Assume makes for a pod on a node are for
	// which container; nil when it makes none there.
	ExtendedResources(pod *cluster.Pod, n *cluster.Node, state *cluster.State) []v1.ContainerExtendedResourceRequest
	// InTheWay returns a claim of a pod that keeps it from nodes and that no other pod has, nil for none;
	// stale reports that the claim was made for the pod and has to go.
	InTheWay(pod *cluster.Pod, state *cluster.State) (claim *resourcev1.ResourceClaim, stale bool)
}

// Waker is implemented by the plugins that filter, and by no others. It tells
// people what wakes a pod that the plugin rejected: the text describes what Hinter
// and the column of local answers do.
type Waker interface{ WakesWhen() string }

// PartsNeeder is implemented by plugins that may reject nodes which lack parts that they get some time
// after they are ready.
type PartsNeeder interface{ NeedsParts() cluster.NodeParts }

// SchedulingGates is the name of the PreEnqueuer whose reason kube-scheduler and the API server tell
// in words of their own.
const SchedulingGates = "SchedulingGates"

// PreEnqueuer is implemented by plugins that keep pods out of the queue.
type PreEnqueuer interface {
	// PreEnqueue returns why the pod must not be queued, or nil. It is asked again when the
	// pod changes, and when the plugin says as a Reclassifier that a change concerns the pod:
	// it reads nothing else of the state. Nobody is told of the reason, but by the API server
	// of that of SchedulingGates.
	PreEnqueue(pod *cluster.Pod, state *cluster.State) *Reason
}

// Less orders pods for scheduling: it is the QueueSort plugin's. It must be a strict
// order in which no two pods of different Sequence are equal.
type Less func(a, b *QueuedPod) bool

// QueuedPod is what a Less may look at.
type QueuedPod struct {
	Pod      *cluster.Pod
	Queued   int64  // when it was first queued, in nanoseconds
	Sequence uint64 // in which order it was first queued; unique
}
