package scaledown

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/scheduler"
)

// This file has the rules by which pods find homes: those of their profiles, as filters, on
// nodes that stay, the fullest first (framework.Packing).

// packers are engines over one world that pack pods: one for each profile.
type packers struct {
	sched    *scheduler.Scheduler
	fallback *engine.Engine // for pods that no profile is for: that of the first
}

// newPackers returns an error that names the profile for which there can be no engine.
func newPackers(world *cluster.State, profiles []*framework.Profile, how engine.Options) (packers, error) {
	packing := make([]*framework.Profile, len(profiles))
	for i, p := range profiles {
		packing[i] = framework.Packing(p, staying{})
	}
	sched, err := scheduler.New(world, packing, how)
	if err != nil {
		return packers{}, err
	}
	return packers{sched, sched.EngineOf(profiles[0].SchedulerName)}, nil
}

// engine returns the engine that packs a pod.
func (x packers) engine(p *cluster.Pod) *engine.Engine {
	if e := x.sched.Engine(p); e != nil {
		return e
	}
	return x.fallback
}

// asLeaving returns a node as packing has those on their way out: no pod may come to it.
func asLeaving(n *cluster.NodeInfo) *cluster.NodeInfo {
	return n.WithTaint(v1.Taint{Key: autoscaler.ToBeDeletedTaint, Effect: v1.TaintEffectNoSchedule})
}

// staying is a plugin that rejects nodes which nobody is to count on: those that are going,
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
	if autoscaler.Going(n.NodeInfo) || n.HasTaint(replacedTaint.Key) || !ready {
		return framework.Final, 0
	}
	return framework.OK, 0
}

// Explain implements framework.LocalRule.
func (stays) Explain(*cluster.Node) *framework.Reason {
	return &framework.Reason{Plugin: "NodeStays", Messages: []string{"node(s) were not ready or were removable themselves"}, Final: true}
}
