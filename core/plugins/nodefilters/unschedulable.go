package nodefilters

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins/tainttoleration"
)

// NodeUnschedulable is the name of ByUnschedulable in kube-scheduler configuration.
const NodeUnschedulable = "NodeUnschedulable"

// ByUnschedulable keeps pods off cordoned nodes (spec.unschedulable), unless
// they tolerate the taint that cordoning implies.
type ByUnschedulable struct{}

var _ framework.Plugin = ByUnschedulable{}

// Name implements framework.Plugin.
func (ByUnschedulable) Name() string { return NodeUnschedulable }

// WakesWhen implements framework.Waker.
func (ByUnschedulable) WakesWhen() string {
	return "a node is uncordoned"
}

// cordoned is the taint that a cordoned node has, or will have shortly.
var cordoned = v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}

func tolerates(pod *cluster.Pod) bool {
	return tainttoleration.Tolerated(pod.Object.Spec.Tolerations, &cordoned)
}

// Sign implements framework.Plugin.
func (ByUnschedulable) Sign(pod *cluster.Pod, _ *cluster.State, local, _ *framework.Signature) {
	local.Bool(tolerates(pod))
}

// For implements framework.Plugin.
func (ByUnschedulable) For(pod *cluster.Pod, _ *cluster.State) (framework.Rules, *framework.Reason) {
	if tolerates(pod) {
		return framework.Rules{}, nil
	}
	return framework.Rules{Local: uncordoned{}}, nil
}

// uncordoned implements framework.LocalRule for pods that don't tolerate the taint.
type uncordoned struct{}

// Reads implements framework.LocalRule.
func (uncordoned) Reads() framework.Aspects { return framework.ReadsObject }

// EvalNode implements framework.LocalRule.
func (uncordoned) EvalNode(n *cluster.Node) (framework.Code, int64) {
	if n.Unschedulable {
		return framework.Final, 0
	}
	return framework.OK, 0
}

// EvalNodes implements framework.ManyNodesRule.
func (uncordoned) EvalNodes(nodes []*cluster.Node, _ int32, _ []int32, rejected []bool) {
	for i, n := range nodes {
		rejected[i] = rejected[i] || n.Unschedulable
	}
}

// Explain implements framework.LocalRule.
func (uncordoned) Explain(*cluster.Node) *framework.Reason {
	return &framework.Reason{Plugin: NodeUnschedulable, Messages: []string{"node(s) were unschedulable"}, Final: true}
}
