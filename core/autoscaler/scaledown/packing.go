package scaledown

import (
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/scheduler"
)

// This file has the rules by which pods find homes: those of their profiles, as filters, on
// nodes that stay, the fullest first (framework.Packing).

// packingScheduler returns engines over the world that pack the pods of the profiles.
func packingScheduler(world *cluster.State, profiles []*framework.Profile, how engine.Options) (*scheduler.Scheduler, error) {
	packing := make([]*framework.Profile, len(profiles))
	for i, p := range profiles {
		packing[i] = framework.Packing(p, staying{})
	}
	return scheduler.New(world, packing, how)
}

// staying is a plugin that rejects nodes which nobody is to count on: those on their way out,
// candidates included, whatever taints a pod tolerates, and those that aren't ready.
type staying struct{}

var _ framework.Plugin = staying{}

// Name implements framework.Plugin.
func (staying) Name() string { return "NodeStays" }

// Sign implements framework.Plugin: nothing of the pod is read.
func (staying) Sign(*cluster.Pod, *cluster.State, *framework.Signature, *framework.Signature) {}

// For implements framework.Plugin.
func (staying) For(*cluster.Pod, *cluster.State) (framework.Rules, *framework.Reason) {
	return framework.Rules{Local: stays{}}, nil
}

type stays struct{}

// Reads implements framework.LocalRule.
func (stays) Reads() framework.Aspects { return framework.ReadsObject }

// EvalNode implements framework.LocalRule.
func (stays) EvalNode(n *cluster.Node) (framework.Code, int64) {
	ready := n.Ready() || n.Object.Labels[scaleup.TemplateNodeLabel] == "true" // a new node will be
	if n.HasTaint(autoscaler.ToBeDeletedTaint) || n.HasTaint(replacedTaint.Key) || n.Object.DeletionTimestamp != nil || !ready {
		return framework.Final, 0
	}
	return framework.OK, 0
}

// Explain implements framework.LocalRule.
func (stays) Explain(*cluster.Node) *framework.Reason {
	return &framework.Reason{Plugin: "NodeStays", Messages: []string{"node(s) weren't ready or could be removed themselves"}, Final: true}
}
