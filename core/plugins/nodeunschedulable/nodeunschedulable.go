// Package nodeunschedulable keeps pods off cordoned nodes (spec.unschedulable), unless
// they tolerate the taint that cordoning implies.
package nodeunschedulable

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins/tainttoleration"
)

// Name is the plugin's name in kube-scheduler configuration.
const Name = "NodeUnschedulable"

// Plugin implements framework.Plugin.
type Plugin struct{}

var _ framework.Plugin = Plugin{}

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// WakesWhen implements framework.Waker.
func (Plugin) WakesWhen() string {
	return "a node is uncordoned"
}

// cordoned is the taint that a cordoned node has, or will have shortly.
var cordoned = v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}

func tolerates(pod *cluster.Pod) bool {
	return tainttoleration.Tolerated(pod.Object.Spec.Tolerations, &cordoned)
}

// Sign implements framework.Plugin.
func (Plugin) Sign(pod *cluster.Pod, _ *cluster.State, local, _ *framework.Signature) {
	local.Bool(tolerates(pod))
}

// For implements framework.Plugin.
func (Plugin) For(pod *cluster.Pod, _ *cluster.State) (framework.Rules, *framework.Reason) {
	if tolerates(pod) {
		return framework.Rules{}, nil
	}
	return framework.Rules{Local: rule{}}, nil
}

// rule implements framework.LocalRule for pods that don't tolerate the taint.
type rule struct{}

// Reads implements framework.LocalRule.
func (rule) Reads() framework.Aspects { return framework.ReadsObject }

// EvalNode implements framework.LocalRule.
func (rule) EvalNode(n *cluster.Node) (framework.Code, int64) {
	if n.Unschedulable {
		return framework.Final, 0
	}
	return framework.OK, 0
}

// EvalNodes implements framework.ManyNodesRule.
func (rule) EvalNodes(nodes []*cluster.Node, _ int32, _ []int32, rejected []bool) {
	for i, n := range nodes {
		rejected[i] = rejected[i] || n.Unschedulable
	}
}

// Explain implements framework.LocalRule.
func (rule) Explain(*cluster.Node) *framework.Reason {
	return &framework.Reason{Plugin: Name, Messages: []string{"node(s) were unschedulable"}, Final: true}
}
