package framework

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
)

// The plugins here follow a pod that was given a node until it is bound
// (kube-scheduler's Reserve, Permit and PostBind). They are asked once for each
// decision, in the order of the profile, never in a what-if, and may remember
// what they were asked. They have no clock and do no I/O: what they do follows
// from what they are asked, so that a replay decides the same.

// Reserver is implemented by plugins that keep something, outside of the
// cluster's state, for a pod on its way to a node.
type Reserver interface {
	Name() string
	// Reserve is told of the node before the pod is bound. A Reason takes the node
	// away from it again.
	Reserve(pod *cluster.Pod, n *cluster.Node) *Reason
	// Unreserve is told that nothing comes of it: once for each Reserve that
	// returned nil, in the reverse order, and not after PostBind. The node may
	// have gone. It may reject other pods that wait.
	Unreserve(pod *cluster.Pod, node string, waiting WaitingPods)
}

// Permitter is implemented by plugins that have the last word on a pod that was
// given a node, or have it wait for others'.
type Permitter interface {
	Name() string
	// Permit allows, rejects or delays the binding. It may allow or reject the pods
	// that wait.
	Permit(pod *cluster.Pod, n *cluster.Node, waiting WaitingPods) Permission
}

// PostBinder is implemented by plugins that want to know which pods were bound.
type PostBinder interface {
	Name() string
	// PostBind is told of a pod that the API has on the node, once.
	PostBind(pod *cluster.Pod, node string)
}

// Permission is the answer of a Permitter; the zero value allows.
type Permission struct {
	Reason *Reason // rejects
	// Wait is how long the pod waits for the plugin to allow it; then it is
	// rejected. More than MaxPermitWait is taken as that, as in kube-scheduler.
	Wait time.Duration
}

// MaxPermitWait is the longest time for which a plugin can have a pod wait.
const MaxPermitWait = 15 * time.Minute

// WaitingPods are the pods that have a node and wait for permission.
type WaitingPods interface {
	// Each calls f for each of them, in the order in which they came to wait.
	Each(f func(WaitingPod))
	// Get returns one of them, or nil.
	Get(uid types.UID) WaitingPod
}

// WaitingPod is a pod that waits for permission. What is said of it takes effect
// when the call in which it is said returns.
type WaitingPod interface {
	Pod() *cluster.Pod
	Node() string
	// Pending are the plugins that it waits for.
	Pending() []string
	// Allow ends the waiting for the plugin, and when it was the last, for good.
	Allow(plugin string)
	// Reject takes the node away from the pod.
	Reject(plugin, message string)
}
