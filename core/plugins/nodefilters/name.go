package nodefilters

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/framework"
)

// NodeName is the name of ByName in kube-scheduler configuration.
const NodeName = "NodeName"

// ByName keeps a pod that names its node to that node.
// Such a pod is bound already and never queued: only
// simulations ask where it could go.
type ByName struct {
	narrows bool // the other nodes are left out before any rule is asked about them
}

// NewByName returns the plugin of a version: in 1.37 it narrows the pod to its node at PreFilter.
func NewByName(v compat.Version) framework.Plugin { return ByName{narrows: v >= compat.V37} }

var (
	_ framework.Plugin = ByName{}
	_ framework.Packer = ByName{}
)

// Name implements framework.Plugin.
func (ByName) Name() string { return NodeName }

// WakesWhen implements framework.Waker.
func (ByName) WakesWhen() string {
	return "the node that it names is added"
}

// Packing implements framework.Packer: a pod on a node names it, and its replacement won't.
func (ByName) Packing() framework.Weighted { return framework.Weighted{} }

// Sign implements framework.Plugin.
func (ByName) Sign(pod *cluster.Pod, _ *cluster.State, local, _ *framework.Signature) {
	local.Str(pod.Object.Spec.NodeName)
}

// For implements framework.Plugin.
func (p ByName) For(pod *cluster.Pod, _ *cluster.State) (framework.Rules, *framework.Reason) {
	if pod.Object.Spec.NodeName == "" {
		return framework.Rules{}, nil
	}
	r := named(pod.Object.Spec.NodeName)
	if p.narrows {
		return framework.Rules{Local: narrowing{r}}, nil
	}
	return framework.Rules{Local: r}, nil
}

// narrowing is a rule that is a framework.Narrower, too.
type narrowing struct{ named }

// NarrowsTo implements framework.Narrower.
func (r narrowing) NarrowsTo() []string { return []string{string(r.named)} }

// named implements framework.LocalRule for pods that name this node.
type named string

// Reads implements framework.LocalRule.
func (named) Reads() framework.Aspects { return framework.ReadsObject }

// EvalNode implements framework.LocalRule.
func (r named) EvalNode(n *cluster.Node) (framework.Code, int64) {
	if n.Name == string(r) {
		return framework.OK, 0
	}
	return framework.Final, 0
}

// Explain implements framework.LocalRule.
func (named) Explain(*cluster.Node) *framework.Reason {
	return &framework.Reason{Plugin: NodeName, Messages: []string{"node(s) didn't match the requested node name"}, Final: true}
}
