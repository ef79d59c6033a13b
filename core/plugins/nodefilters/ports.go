package nodefilters

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// NodePorts is the name of ByPorts in kube-scheduler configuration.
const NodePorts = "NodePorts"

// ByPorts keeps a pod off nodes where one of its host ports is taken: the
// same port and protocol on the same address, or on all addresses (0.0.0.0) of either.
type ByPorts struct{}

var _ framework.Plugin = ByPorts{}

// Name implements framework.Plugin.
func (ByPorts) Name() string { return NodePorts }

// WakesWhen implements framework.Waker.
func (ByPorts) WakesWhen() string {
	return "its host port becomes free on a node"
}

// Sign implements framework.Plugin.
func (ByPorts) Sign(pod *cluster.Pod, _ *cluster.State, local, _ *framework.Signature) {
	local.Int(int64(len(pod.Ports)))
	for _, p := range pod.Ports {
		local.Str(p.IP)
		local.Str(string(p.Protocol))
		local.Int(int64(p.Port))
	}
}

// For implements framework.Plugin.
func (ByPorts) For(pod *cluster.Pod, _ *cluster.State) (framework.Rules, *framework.Reason) {
	if len(pod.Ports) == 0 {
		return framework.Rules{}, nil
	}
	return framework.Rules{Local: freePorts(pod.Ports)}, nil
}

// freePorts implements framework.LocalRule for pods that ask for these ports.
type freePorts []cluster.HostPort

// Reads implements framework.LocalRule.
func (freePorts) Reads() framework.Aspects { return framework.ReadsPods }

// EvalNode implements framework.LocalRule.
func (r freePorts) EvalNode(n *cluster.Node) (framework.Code, int64) {
	for _, want := range r {
		for _, used := range n.Ports {
			if want.Conflicts(used) {
				return framework.Reject, 0
			}
		}
	}
	return framework.OK, 0
}

// Count implements framework.Counter: a second pod would ask for the ports of the first.
func (r freePorts) Count(n *cluster.Node) int {
	if code, _ := r.EvalNode(n); code != framework.OK {
		return 0
	}
	return 1
}

// Explain implements framework.LocalRule.
func (freePorts) Explain(*cluster.Node) *framework.Reason {
	return &framework.Reason{Plugin: NodePorts, Messages: []string{"node(s) didn't have free ports for the requested pod ports"}}
}
