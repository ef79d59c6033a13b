package scaledown

import (
	"fmt"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// This file says which nodes aren't looked at as candidates, whatever their pods say
// (core/autoscaler/drainability). The order of the reasons is the order in which people
// have to clear them away: a later one is found when the earlier are gone.

// Check finds the nodes that aren't candidates. It is made for one pass.
type Check struct {
	Rules     *autoscaler.RemovalRules
	State     *cluster.State
	Readiness *autoscaler.Readiness
	Now       time.Time // the API server's, by which nodes are created
	// Until is the first of the times after which something that was said may be otherwise
	// though nothing has changed; zero for none.
	Until time.Time
}

// Ineligible returns why a node isn't a candidate, nil when it may be one. What the
// minimums of its group and of the cluster say is Minimums' to say, in order.
func (c *Check) Ineligible(n *cluster.Node) *autoscaler.Kept {
	if k := c.keptByItself(n); k != nil {
		return k
	}
	if !n.Ready() {
		if g := c.State.Group(n.Group); !c.Readiness.Late(n.NodeInfo, g, c.Now) {
			length, by := c.Readiness.StartupOf(g)
			c.Until = earlier(c.Until, n.Object.CreationTimestamp.Add(length))
			return newKept(n, autoscaler.KeptStarting, fmt.Sprintf("it is not ready yet, and was created within the last %s (%s)", length, by))
		}
		if c.Rules.KeepUnready {
			return newKept(n, autoscaler.KeptUnready, "it is not ready (--scale-down-unready-enabled=false)")
		}
	}
	if len(n.Nominated) > 0 {
		return keptFor(n)
	}
	share, resource := c.Utilization(n)
	if limit, by := c.threshold(n, resource); share > limit {
		k := newKept(n, autoscaler.KeptUtilized, fmt.Sprintf("%s utilization %.4g %% > %.4g %% (%s)", resource, 100*share, 100*limit, by))
		k.Utilization = share
		return k
	}
	return nil
}

// keptByItself returns what the node's own object says against its removal.
func (c *Check) keptByItself(n *cluster.Node) *autoscaler.Kept {
	switch {
	case n.Group == "":
		return newKept(n, autoscaler.KeptNotAutoscaled, "it is not in a node group")
	case c.State.Group(n.Group) == nil:
		return newKept(n, autoscaler.KeptNotAutoscaled, "its node group "+n.Group+" no longer exists")
	case Leaving(n.NodeInfo):
		return newKept(n, autoscaler.KeptLeaving, "it is being removed")
	}
	if why := c.State.Group(n.Group).KeepNodes; why != "" {
		return newKept(n, autoscaler.KeptRollout, why)
	}
	for _, key := range [...]string{cluster.ScaleDownDisabledAnnotation, cluster.DoNotDisruptAnnotation} {
		if n.Object.Annotations[key] == "true" {
			return newKept(n, autoscaler.KeptDisabled, "it has the annotation "+key+": true")
		}
	}
	return nil
}

// Leaving reports whether a node is on its way out: somebody is removing it, or the API is
// deleting it.
func Leaving(n *cluster.NodeInfo) bool {
	return n.Object.DeletionTimestamp != nil || n.HasTaint(autoscaler.ToBeDeletedTaint)
}

// keptFor names the pod that is to come to a node; a stand-in, which is no pod to people,
// only when nobody else is.
func keptFor(n *cluster.Node) *autoscaler.Kept {
	for _, p := range n.Nominated {
		if !p.StandsIn() {
			k := newKept(n, autoscaler.KeptAwaited, "the pod is nominated to it")
			k.Pod = p.Name()
			return k
		}
	}
	return newKept(n, autoscaler.KeptAwaited, "room is reserved on it for expected pods")
}

func newKept(n *cluster.Node, why autoscaler.KeptReason, detail string) *autoscaler.Kept {
	return &autoscaler.Kept{Node: n.Name, Reason: why, Detail: detail}
}
