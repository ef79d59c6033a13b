package framework

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
)

// The plugins here follow a pod from the choice of its node to its binding
// (kube-scheduler's Reserve, Permit and PostBind). The core calls them once for each
// decision, in the order of the profile, never in a what-if, and they may remember
// the calls. They have no clock and do no I/O: what they do follows
// from the calls, so that a replay decides the same.
//
// In order: every Reserve, then every Permit, then, if plugins delay the binding, the
// wait until all of them allowed it. After the binding PostBind; if the binding fails
// or somebody rejects the pod, Unreserve of those that reserved, last first.

// Reserver is implemented by plugins that keep something, outside of the
// cluster's state, for a pod on its way to a node.
type Reserver interface {
	Name() string
	// Reserve keeps something for the pod on the node that was chosen. A Reason
	// takes the node away from the pod again.
	Reserve(pod *cluster.Pod, n *cluster.Node) *Reason
	// Unreserve gives back what Reserve kept, because the pod won't be bound to the
	// node: it is called once for each Reserve that returned nil, in the reverse
	// order, and not after PostBind. The node may no longer exist. Unreserve may
	// reject other pods that wait for permission.
	Unreserve(pod *cluster.Pod, node string, waiting WaitingPods)
}

// Permitter is implemented by plugins that may reject a pod that was given a node,
// or have it wait, for instance until the other pods of its gang have nodes too.
type Permitter interface {
	Name() string
	// Permit allows, rejects or delays the binding. It may allow or reject other
	// pods that wait.
	Permit(pod *cluster.Pod, n *cluster.Node, waiting WaitingPods) Permission
}

// PostBinder is implemented by plugins that act on pods that were bound.
type PostBinder interface {
	Name() string
	// PostBind is called once for a pod, when the API has it on the node.
	PostBind(pod *cluster.Pod, node string)
}

// Permission is the answer of a Permitter; the zero value allows.
type Permission struct {
	Reason *Reason // if not nil, rejects the pod, whatever Wait says
	// Wait is how long the pod waits for the plugin to allow it; when it has passed
	// the pod is rejected. More than MaxPermitWait counts as MaxPermitWait, as in
	// kube-scheduler.
	Wait time.Duration
}

// MaxPermitWait is the longest time for which a plugin can have a pod wait.
const MaxPermitWait = 15 * time.Minute

// WaitingPods are the pods that have a node and wait for permission.
type WaitingPods interface {
	// Each calls f for each pod, in the order in which they began to wait.
	Each(f func(WaitingPod))
	// EachMember calls f for each that is a member of a pod group, in that order.
	EachMember(group cluster.PodGroupKey, f func(WaitingPod))
	// Get returns the pod of a UID, nil when it doesn't wait.
	Get(uid types.UID) WaitingPod
}

// WaitingPod is a pod that waits for permission. Allow and Reject take effect when
// the plugin's call in which they were used returns.
type WaitingPod interface {
	Pod() *cluster.Pod
	Node() string
	// Pending returns the names of the plugins that the pod waits for.
	Pending() []string
	// Allow ends the wait for a plugin. After the last one the pod is bound.
	Allow(plugin string)
	// Reject takes the node away from the pod, for a plugin's reason. The first
	// rejection counts.
	Reject(plugin, message string)
}
