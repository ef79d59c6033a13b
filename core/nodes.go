package core

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle/candidates"
	"github.com/berthproject/berth/core/step"
)

// This file takes in nodes and workloads. What is decided about a node holds until the API
// shows it: the mode says how the state is to have a node that the API shows.

func (c *Core) nodeSet(in step.NodeSet) {
	c.turn.Created(in.Node.CreationTimestamp.Time)
	info := c.state.Schema.ParseNode(in.Node, in.Group)
	c.comparison.NodeSet(info)
	c.nodeComparison.NodeSet(c.turn, info)
	node := c.mode.nodeShown(in.Node, info)
	if node == nil {
		return
	}
	before := c.state.NodeByName(node.Name)
	// A provider may learn of which group a node is after the API has shown it.
	joins := before == nil || before.Group == "" && node.Group != ""
	c.state.SetNode(node)
	if joins {
		c.reservation.NodeSet(c.turn, node)
	}
	if c.cfg.Autoscale != nil {
		usable := c.usable(node)
		c.scale.launches.NodeSet(c.turn.Now, node, usable)
		c.scale.groups.NodeShown(node, c.state.Template(node.Group), usable)
		c.scale.groups.DevicesShown(c.state, node)
	}
}

func (c *Core) nodeGone(in step.NodeGone) {
	c.nodeComparison.NodeGone(c.turn, in.Name) // before the candidates forget the node
	c.reporting.NodeGone(in.Name)
	c.state.RemoveNode(in.Name)
	c.reservation.NodeGone(c.turn, in.Name)
	if c.cfg.Autoscale != nil {
		c.scale.launches.NodeGone(in.Name)
		c.scale.groups.NodeGone(in.Name)
		c.scale.candidates.NodeGone(in.Name)
		c.scale.interruptions.NodeGone(c.turn, in.Name)
		c.scale.deletions.NodeGone(c.turn, in.Name)
	}
}

func (c *Core) workloadSet(in step.WorkloadSet) { c.state.SetWorkload(in.Workload) }

// daemonSetSet keeps the pod that the DaemonSet's controller would make for a node, but
// for the affinity to that node's name: the autoscaler counts the pod on nodes that don't
// exist yet.
func (c *Core) daemonSetSet(in step.DaemonSetSet) {
	set := in.DaemonSet
	controls := true
	obj := &v1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
	obj.Namespace, obj.Name, obj.UID = set.Namespace, set.Name, set.UID
	obj.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: set.Name, UID: set.UID, Controller: &controls}}
	if obj.Spec.SchedulerName == "" {
		obj.Spec.SchedulerName = v1.DefaultSchedulerName
	}
	// As the DaemonSet controller adds (pkg/controller/daemon/util).
	for _, key := range []string{v1.TaintNodeNotReady, v1.TaintNodeUnreachable, v1.TaintNodeDiskPressure,
		v1.TaintNodeMemoryPressure, v1.TaintNodePIDPressure, v1.TaintNodeUnschedulable} {
		obj.Spec.Tolerations = append(obj.Spec.Tolerations, v1.Toleration{Key: key, Operator: v1.TolerationOpExists})
	}
	c.state.SetWorkload(&cluster.Workload{Kind: cluster.DaemonSet, Namespace: set.Namespace, Name: set.Name, Template: c.state.Schema.ParsePod(obj)})
}

func (c *Core) workloadGone(in step.WorkloadGone) {
	c.state.RemoveWorkload(in.Kind, in.Namespace, in.Name)
}

// nodeProblems returns which values of a node can't be taken as they stand.
func (c *Core) nodeProblems(n *cluster.NodeInfo) []cluster.Problem {
	if c.cfg.Autoscale == nil {
		return n.Problems
	}
	return candidates.Problems(n)
}

// usable reports whether a node takes pods as the template of its group says.
func (c *Core) usable(n *cluster.NodeInfo) bool {
	return c.cfg.Autoscale.Readiness.Usable(n, c.state.Template(n.Group))
}
