package dynamicresources

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/devices"
	"github.com/berthproject/berth/core/framework"
)

// The score that keeps devices together, which kube-scheduler doesn't have.

// Strategy is how nodes are scored by their devices, and in which order their devices are tried.
type Strategy string

// The strategies.
const (
	// AsPublished is kube-scheduler's: devices don't count for the score, and are tried in the order in
	// which they are published.
	AsPublished Strategy = ""
	// LeastFragmentation prefers nodes where a pod costs the claims that are usual in the cluster the fewest
	// places, and devices that are in use already. It scores pods without claims, too: they take CPU and
	// memory, without which devices are of no use.
	LeastFragmentation Strategy = "LeastFragmentation"
)

// Packing implements framework.Packer: the filters stay, and the score goes.
func (p Plugin) Packing() framework.Weighted {
	p.strategy = AsPublished
	return framework.Weighted{Plugin: framework.OnlyFilters(p)}
}

// how returns how devices are to be allocated.
func (p Plugin) how(state *cluster.State) devices.How {
	packed := p.strategy == LeastFragmentation
	if packed {
		state.Devices().FollowWorkload()
	}
	return devices.How{Steps: p.steps, Packed: packed}
}

// keeper implements framework.LocalRule for pods without claims: it rejects no node. Its score changes
// with the devices of a node, and with the usual claims, both of which touch the node.
type keeper struct {
	state       *cluster.State
	cpu, memory int64 // that the pod requests
}

// keeperFor returns what scores nodes for a pod, nil when devices don't count.
func (p Plugin) keeperFor(pod *cluster.Pod, state *cluster.State) *keeper {
	if p.strategy != LeastFragmentation {
		return nil
	}
	state.Devices().FollowWorkload()
	return &keeper{state, pod.Request.At(cluster.CPU), pod.Request.At(cluster.Memory)}
}

// alone returns the rules for a pod that claims nothing.
func (k *keeper) alone() framework.Rules {
	if k == nil {
		return framework.Rules{}
	}
	return framework.Rules{Local: k}
}

// Reads implements framework.LocalRule.
func (*keeper) Reads() framework.Aspects { return framework.ReadsObject | framework.ReadsPods }

// EvalNode implements framework.LocalRule.
func (k *keeper) EvalNode(n *cluster.Node) (framework.Code, int64) {
	return framework.OK, k.score(n, nil)
}

// Explain implements framework.LocalRule.
func (*keeper) Explain(*cluster.Node) *framework.Reason { return nil }

// smallest is what a pod that takes no devices, or less of them, counts for: a tenth of one.
const smallest = 100

// score returns MaxScore for a node where the usual claims lose nothing by the pod, and half of it where
// they lose as much as it takes.
func (k *keeper) score(n *cluster.Node, uses []devices.Use) int64 {
	takes := int64(0)
	for i := range uses {
		takes += int64(uses[i].Amount)
	}
	takes = max(takes, smallest)
	lost := k.state.Devices().Lost(indexOf(n, k.state), uses, k.free(n))
	return framework.MaxScore * takes / (takes + max(lost, 0))
}

// free returns how much of a node's CPU and memory is free, by that of which there is less.
func (k *keeper) free(n *cluster.Node) devices.Share {
	cpu, memory := n.Allocatable.At(cluster.CPU), n.Allocatable.At(cluster.Memory)
	freeCPU, freeMemory := cpu-n.Requested.At(cluster.CPU), memory-n.Requested.At(cluster.Memory)
	return devices.Share{
		Before: min(part(freeCPU, cpu), part(freeMemory, memory)),
		After:  min(part(freeCPU-k.cpu, cpu), part(freeMemory-k.memory, memory)),
	}
}

// part returns which part of a whole something is, in parts of devices.Shares.
func part(of, all int64) int64 {
	if of <= 0 || all <= 0 {
		return 0
	}
	return int64(float64(of) / float64(all) * devices.Shares)
}
