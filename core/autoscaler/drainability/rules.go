package drainability

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
)

// The rules, in the order in which they are asked.

// mirror: the API's image of a static pod can't be evicted, and goes with its node.
func mirror(_ *Context, p *cluster.Pod) (Outcome, string, bool) {
	return Ignore, "", p.OfNode && p.Mirror()
}

// terminatingSlack is how long after its grace period a terminating pod is still waited for.
const terminatingSlack = 30 * time.Second

// longTerminating: a pod that should have terminated by now counts as gone. Its kubelet may
// never confirm it.
func longTerminating(c *Context, p *cluster.Pod) (Outcome, string, bool) {
	if LongTerminating(p, c.Now) {
		return Ignore, "", true
	}
	c.holdsUntil(TerminatesUntil(p))
	return 0, "", false
}

// LongTerminating reports whether a pod is terminating and should be gone by now, the API
// server's time. As in Cluster Autoscaler the grace period counts from the deletion
// timestamp, which the API server has set to the end of that period already: a pod that is
// slow gets it twice.
func LongTerminating(p *cluster.Pod, now time.Time) bool {
	return p.Eviction.Terminating && TerminatesUntil(p).Before(now)
}

// TerminatesUntil returns until when a pod that is terminating is waited for; zero for any other.
func TerminatesUntil(p *cluster.Pod) time.Time {
	if !p.Eviction.Terminating {
		return time.Time{}
	}
	return p.Object.DeletionTimestamp.Add(time.Duration(p.Eviction.Grace)*time.Second + terminatingSlack)
}

// doNotDisrupt: Karpenter's annotation keeps the pod's node as long as the pod runs, a
// DaemonSet's pod included. A pod that terminates or has ended isn't disrupted any more.
func doNotDisrupt(_ *Context, p *cluster.Pod) (Outcome, string, bool) {
	if e := &p.Eviction; !e.DoNotDisrupt || e.Terminating || e.Ended {
		return 0, "", false
	}
	return Block, "has the annotation " + cluster.DoNotDisruptAnnotation + ": true", true
}

// daemonSet: a DaemonSet's pod goes with its node, and one that is treated so
// (cluster.DaemonPodAnnotation). Whether it is evicted first is no matter for a plan.
func daemonSet(_ *Context, p *cluster.Pod) (Outcome, string, bool) {
	return Ignore, "", p.OfNode && p.Daemon()
}

// safeToEvict: the annotation safe-to-evict=true makes the pod evictable whatever the rules
// behind this one would say.
func safeToEvict(_ *Context, p *cluster.Pod) (Outcome, string, bool) {
	return Evict, "", p.Eviction.Safe == cluster.SafeTrue
}

// terminal: a pod that has run to its end needs no other node. (Cluster Autoscaler has it
// evicted with the others.)
func terminal(_ *Context, p *cluster.Pod) (Outcome, string, bool) {
	return Ignore, "", p.Eviction.Ended
}

// onCompletion: the annotation safe-to-evict=on-completion lets the pod run to its end; the
// node may go afterwards.
func onCompletion(_ *Context, p *cluster.Pod) (Outcome, string, bool) {
	return WaitFor, "has the annotation " + cluster.SafeToEvictAnnotation + ": on-completion", p.Eviction.Safe == cluster.SafeOnCompletion
}

// podGroup: the members of a pod group are placed together with their replacements. Where these
// couldn't be placed at all, members stay, and so do those that get successors first where one of them
// can't (--surge). That members of some groups are evicted together only is the
// caller's to see to.
func podGroup(c *Context, p *cluster.Pod) (Outcome, string, bool) {
	if p.Group == nil {
		return 0, "", false
	}
	switch g := c.State.PodGroup(*p.Group); {
	case g == nil:
		return Block, "is a member of PodGroup " + p.Group.Name + ", which doesn't exist, so its replacement would not be placed", true
	case g.Spec.ParentCompositePodGroupName != nil:
		return Block, "is a member of PodGroup " + p.Group.Name + ", which is part of a CompositePodGroup, so its replacement would not be placed", true
	}
	if key, ok := c.State.SurgesWhole(p); ok && c.Rules.Surge && !c.Alone {
		if _, why := c.State.WhyNoSuccessors(key); why != "" {
			return Block, "is a member of PodGroup " + p.Group.Name + ", whose members all get successors before one of them leaves, and " + why, true
		}
	}
	return 0, "", false
}

// replicated: somebody has to replace the pod. With
// --skip-nodes-with-custom-controller-pods that is a controller of a kind that is known to
// do so, whatever its API group; without, any.
func replicated(c *Context, p *cluster.Pod) (Outcome, string, bool) {
	ref := metav1.GetControllerOfNoCopy(p.Object)
	switch {
	case ref == nil:
		return Block, "has no controller, so nothing would recreate it", true
	case c.Rules.SkipCustomControllerPods && !replaces(ref.Kind):
		return Block, "is controlled by a " + ref.Kind + ", which may not recreate it (--skip-nodes-with-custom-controller-pods)", true
	}
	return 0, "", false
}

// replaces reports whether controllers of a kind replace pods that were evicted.
func replaces(kind string) bool {
	switch kind {
	case string(cluster.ReplicaSet), string(cluster.StatefulSet), string(cluster.ReplicationController), string(cluster.Job):
		return true
	}
	return false
}

// system: a pod of kube-system that no disruption budget covers keeps its node, until
// --blocking-system-pod-distruption-timeout after its creation. Then it is evicted, and the
// rules behind this one aren't asked. The rule is asked with --skip-nodes-with-system-pods
// only.
func system(c *Context, p *cluster.Pod) (Outcome, string, bool) {
	if !c.Rules.SkipSystemPods || p.Object.Namespace != cluster.SystemNamespace {
		return 0, "", false
	}
	for _, b := range c.State.Budgets(cluster.SystemNamespace) {
		if b.Covers(p) {
			return 0, "", false
		}
	}
	created := p.Object.CreationTimestamp
	if !created.IsZero() {
		until := created.Add(c.Rules.SystemPodTimeout)
		if c.Now.After(until) {
			return Evict, "", true
		}
		c.holdsUntil(until)
	}
	return Block, "is in namespace " + cluster.SystemNamespace + ", is covered by no disruption budget, and was created less than " + c.Rules.SystemPodTimeout.String() + " ago", true
}

// notSafeToEvict: the annotation safe-to-evict=false keeps the pod's node.
func notSafeToEvict(_ *Context, p *cluster.Pod) (Outcome, string, bool) {
	return Block, "has the annotation " + cluster.SafeToEvictAnnotation + ": false", p.Eviction.Safe == cluster.SafeFalse
}

// localStorage: a pod with data on its node's disk (emptyDir that isn't in memory, hostPath)
// keeps the node, unless its annotation safe-to-evict-local-volumes names all such volumes.
// The rule is asked with --skip-nodes-with-local-storage only.
func localStorage(c *Context, p *cluster.Pod) (Outcome, string, bool) {
	if !c.Rules.SkipLocalStorage || p.Eviction.LocalVolume == "" {
		return 0, "", false
	}
	return Block, "would lose its local volume " + p.Eviction.LocalVolume, true
}
