// Package nodename keeps a pod that names its node to that node.
package nodename

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Name is the plugin's name in kube-scheduler configuration.
const Name = "NodeName"

// Plugin implements framework.Plugin. A pod with spec.nodeName is bound already and
// never queued: only simulations ask where it could go.
type Plugin struct{}

var (
	_ framework.Plugin = Plugin{}
	_ framework.Packer = Plugin{}
)

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// WakesWhen implements framework.Waker.
func (Plugin) WakesWhen() string {
	return "the node that it names is added"
}

// Packing implements framework.Packer: a pod on a node names it, and its replacement won't.
func (Plugin) Packing() framework.Weighted { return framework.Weighted{} }

// Sign implements framework.Plugin.
func (Plugin) Sign(pod *cluster.Pod, _ *cluster.State, local, _ *framework.Signature) {
	local.Str(pod.Object.Spec.NodeName)
}

// For implements framework.Plugin.
func (Plugin) For(pod *cluster.Pod, _ *cluster.State) (framework.Rules, *framework.Reason) {
	if pod.Object.Spec.NodeName == "" {
		return framework.Rules{}, nil
	}
	return framework.Rules{Local: rule(pod.Object.Spec.NodeName)}, nil
}

// rule implements framework.LocalRule for pods that name this node.
type rule string

// Reads implements framework.LocalRule.
func (rule) Reads() framework.Aspects { return framework.ReadsObject }

// EvalNode implements framework.LocalRule.
func (r rule) EvalNode(n *cluster.Node) (framework.Code, int64) {
	if n.Name == string(r) {
		return framework.OK, 0
	}
	return framework.Final, 0
}

// Explain implements framework.LocalRule.
func (rule) Explain(*cluster.Node) *framework.Reason {
	return &framework.Reason{Plugin: Name, Messages: []string{"node(s) didn't match the requested node name"}, Final: true}
}
