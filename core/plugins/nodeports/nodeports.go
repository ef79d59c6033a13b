// Package nodeports keeps a pod off nodes where one of its host ports is taken: the
// same port and protocol on the same address, or on all addresses (0.0.0.0) of either.
package nodeports

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Name is the plugin's name in kube-scheduler configuration.
const Name = "NodePorts"

// Plugin implements framework.Plugin.
type Plugin struct{}

var _ framework.Plugin = Plugin{}

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// WakesWhen implements framework.Waker.
func (Plugin) WakesWhen() string {
	return "its host port becomes free on a node"
}

// Sign implements framework.Plugin.
func (Plugin) Sign(pod *cluster.Pod, _ *cluster.State, local, _ *framework.Signature) {
	local.Int(int64(len(pod.Ports)))
	for _, p := range pod.Ports {
		local.Str(p.IP)
		local.Str(string(p.Protocol))
		local.Int(int64(p.Port))
	}
}

// For implements framework.Plugin.
func (Plugin) For(pod *cluster.Pod, _ *cluster.State) (framework.Rules, *framework.Reason) {
	if len(pod.Ports) == 0 {
		return framework.Rules{}, nil
	}
	return framework.Rules{Local: rule(pod.Ports)}, nil
}

// rule implements framework.LocalRule for pods that ask for these ports.
type rule []cluster.HostPort

// Reads implements framework.LocalRule.
func (rule) Reads() framework.Aspects { return framework.ReadsPods }

// EvalNode implements framework.LocalRule.
func (r rule) EvalNode(n *cluster.Node) (framework.Code, int64) {
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
func (r rule) Count(n *cluster.Node) int {
	if code, _ := r.EvalNode(n); code != framework.OK {
		return 0
	}
	return 1
}

// Explain implements framework.LocalRule.
func (rule) Explain(*cluster.Node) *framework.Reason {
	return &framework.Reason{Plugin: Name, Messages: []string{"node(s) didn't have free ports for the requested pod ports"}}
}
