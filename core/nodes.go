package core

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/autoscaler"
)

func (in NodeSet) apply(c *Core, r *Ready) {
	info := c.state.Schema.ParseNode(in.Node, in.Group)
	c.problems("Node", in.Node.UID, "", in.Node.Name, info.Problems, r)
	if d := c.scale.deletions[in.Node.Name]; d != nil {
		// What we have decided holds until the API shows it.
		info = info.WithTaint(d.taint)
	} else if c.cfg.Autoscale != nil && info.HasTaint(autoscaler.ToBeDeletedTaint) {
		c.resumeDeletion(info)
	}
	c.state.SetNode(info)
}

func (in NodeGone) apply(c *Core, _ *Ready) {
	if n := c.state.NodeByName(in.Name); n != nil {
		delete(c.bad, n.Object.UID)
	}
	c.state.RemoveNode(in.Name)
	delete(c.scale.deletions, in.Name)
	delete(c.scale.emptySince, in.Name)
}

func (in WorkloadSet) apply(c *Core, _ *Ready) { c.state.SetWorkload(in.Workload) }

func (in WorkloadGone) apply(c *Core, _ *Ready) {
	c.state.RemoveWorkload(in.Kind, in.Namespace, in.Name)
}

func nodeEvent(o *v1.Node, warning bool, reason, action, message string) Event {
	return Event{"Node", o.UID, "", o.Name, warning, reason, action, message}
}
