package scaledown

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/drainability"
	"github.com/berthproject/berth/core/cluster"
)

// load is how much of a resource of a node counts as requested, and of how much.
type load struct {
	id       cluster.ResourceID
	used, of int64
}

// share is 0 when nothing is requested, also of a resource that the node hasn't.
func (l load) share() float64 { return float64(l.used) / float64(max(l.of, 1)) }

// Utilization returns what share of a node its pods request, 0 to 1 or more, and of which
// resource: the larger of CPU and memory, as Cluster Autoscaler counts
// (pkg/simulator/utilization there); of a node with GPUs, of these alone; of one with devices of its own,
// of the pool of these of which the most is taken. A node whose GPUs
// aren't there yet, or no more, isn't utilized. Pods that are long terminating don't count, but for their
// devices.
// Those of DaemonSets and mirror pods count as flags and the group's options say: when they
// don't, what they request isn't the node's to give either. It costs O(pods of the node)
// when one doesn't count, otherwise O(1).
func (c *Check) Utilization(n *cluster.Node) (share float64, resource v1.ResourceName) {
	if id, ok := c.gpu(n); ok {
		l := []load{{id: id}}
		c.measure(n, l)
		return l[0].share(), id.Name()
	}
	if share, pool, ok := c.State.Devices().Utilization(n.Name); ok {
		return share, v1.ResourceName(pool.Driver + "/" + pool.Name)
	}
	l := []load{{id: cluster.CPU}, {id: cluster.Memory}}
	c.measure(n, l)
	if cpu, memory := l[0].share(), l[1].share(); cpu <= memory {
		return memory, v1.ResourceMemory
	}
	return l[0].share(), v1.ResourceCPU
}

// measure fills in the loads of some resources.
func (c *Check) measure(n *cluster.Node, loads []load) {
	for i := range loads {
		loads[i].used, loads[i].of = n.Requested.At(loads[i].id), n.Allocatable.At(loads[i].id)
	}
	daemons := c.Rules.IgnoreDaemonPods
	if o := c.options(n); o.IgnoreDaemonSetsUtilization != nil {
		daemons = *o.IgnoreDaemonSetsUtilization
	}
	if n.Terminating == 0 && (n.Workload == len(n.Pods) || !daemons && !c.Rules.IgnoreMirrorPods) {
		return // all pods count
	}
	for _, p := range n.Pods {
		leftOut := p.OfNode && (daemons && p.Daemon() || c.Rules.IgnoreMirrorPods && p.Mirror())
		if !leftOut && !drainability.LongTerminating(p, c.Now) {
			c.Until = earlier(c.Until, drainability.TerminatesUntil(p))
			continue
		}
		for i := range loads {
			request := p.Request.At(loads[i].id)
			if loads[i].used -= request; leftOut {
				loads[i].of -= request
			}
		}
	}
}

// gpu returns the resource of a node's GPUs: of those that it has, or that new nodes of its
// group have.
func (c *Check) gpu(n *cluster.Node) (cluster.ResourceID, bool) {
	for _, id := range cluster.GPUs() {
		if n.Allocatable.At(id) > 0 {
			return id, true
		}
		if g := c.State.Group(n.Group); g != nil && g.Template != nil && g.Template.Allocatable.At(id) > 0 {
			return id, true
		}
	}
	return cluster.ResourceID{}, false
}

// options returns the options of a node's group, without any when it has none of its own.
func (c *Check) options(n *cluster.Node) cluster.GroupOptions {
	if g := c.State.Group(n.Group); g != nil && g.Options != nil {
		return *g.Options
	}
	return cluster.GroupOptions{}
}

// threshold returns the largest utilization that a node of the resource may have and still
// be removed, and what sets it.
func (c *Check) threshold(n *cluster.Node, resource v1.ResourceName) (limit float64, by string) {
	own, limit, by := c.options(n).UtilizationThreshold, c.Rules.UtilizationThreshold, "--scale-down-utilization-threshold"
	gpus := cluster.GPUs()
	if slices.ContainsFunc(gpus[:], func(id cluster.ResourceID) bool { return id.Name() == resource }) {
		own, limit, by = c.options(n).GPUUtilizationThreshold, c.Rules.GPUUtilizationThreshold, "--scale-down-gpu-utilization-threshold"
	}
	if own != nil {
		return *own, "an option of its node group"
	}
	return limit, by
}
