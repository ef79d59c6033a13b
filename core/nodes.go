package core

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/step"

	"github.com/berthproject/berth/core/cluster"
)

func (c *Core) nodeSet(in step.NodeSet) {
	info := c.mode.nodeShown(in.Node, c.state.Schema.ParseNode(in.Node, in.Group))
	if info != nil {
		c.state.SetNode(info)
	}
}

func (c *Core) nodeGone(in step.NodeGone) {
	c.reporting.NodeGone(in.Name)
	c.state.RemoveNode(in.Name)
	if c.cfg.Autoscale != nil {
		c.scale.deletions.NodeGone(in.Name)
	}
}

func (c *Core) workloadSet(in step.WorkloadSet) { c.state.SetWorkload(in.Workload) }

// apply keeps the pod that the DaemonSet's controller would make for a node. Its
// affinity to that node's name is left out, so that it may stand for any.
func (c *Core) daemonSetSet(in step.DaemonSetSet) {
	d := in.DaemonSet
	yes := true
	pod := &v1.Pod{ObjectMeta: *d.Spec.Template.ObjectMeta.DeepCopy(), Spec: *d.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name, pod.UID = d.Namespace, d.Name, d.UID
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: d.Name, UID: d.UID, Controller: &yes}}
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = v1.DefaultSchedulerName
	}
	// As the DaemonSet controller adds (pkg/controller/daemon/util).
	for _, key := range []string{v1.TaintNodeNotReady, v1.TaintNodeUnreachable, v1.TaintNodeDiskPressure,
		v1.TaintNodeMemoryPressure, v1.TaintNodePIDPressure, v1.TaintNodeUnschedulable} {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, v1.Toleration{Key: key, Operator: v1.TolerationOpExists})
	}
	c.state.SetWorkload(&cluster.Workload{Kind: cluster.DaemonSet, Namespace: d.Namespace, Name: d.Name, Template: c.state.Schema.ParsePod(pod)})
}

func (c *Core) workloadGone(in step.WorkloadGone) {
	c.state.RemoveWorkload(in.Kind, in.Namespace, in.Name)
}
