// Package nodename keeps a pod that names its node to that node.
package nodename

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/framework"
)

// Name is the plugin's name in kube-scheduler configuration.
const Name = "NodeName"

// Plugin implements framework.Plugin. A pod with spec.nodeName is bound already and
// never queued: only simulations ask where it could go.
type Plugin struct {
	narrows bool // the other nodes are left out before any rule is asked about them
}

// New returns the plugin of a version: in 1.37 it narrows the pod to its node at PreFilter.
func New(v compat.Version) Plugin { return Plugin{narrows: v >= compat.V37} }

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
func (p Plugin) For(pod *cluster.Pod, _ *cluster.State) (framework.Rules, *framework.Reason) {
	if pod.Object.Spec.NodeName == "" {
		return framework.Rules{}, nil
	}
	r := rule(pod.Object.Spec.NodeName)
	if p.narrows {
		return framework.Rules{Local: narrowing{r}}, nil
	}
	return framework.Rules{Local: r}, nil
}

// narrowing is a rule that is a framework.Narrower, too.
type narrowing struct{ rule }

// NarrowsTo implements framework.Narrower.
func (r narrowing) NarrowsTo() []string { return []string{string(r.rule)} }

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
