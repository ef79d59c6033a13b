package noderesources

import (
	"math"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// This file has the usual case of both rules: the pod requests CPU and memory, these two are scored
// with equal weights, and by LeastAllocated. EvalNodes then evaluates many nodes in a row with what
// it reads of the pod in registers, and a node's two resources side by side. What it says about a node
// is what EvalNode says, bit for bit; where the pod, the profile or a node is another, it asks EvalNode.

// pair is an amount of CPU and one of memory.
type pair struct{ cpu, memory int64 }

// ofCPUAndMemory reports whether the resources are CPU and memory, in this order and with equal
// weights above 0.
func ofCPUAndMemory(resources []scored) bool {
	return len(resources) == 2 && resources[0].id == cluster.CPU && resources[1].id == cluster.Memory &&
		resources[0].weight == resources[1].weight && resources[0].weight > 0
}

// usualRequests returns the requests of CPU and memory, when there are no others. One that isn't
// requested is so low that every node has as much, as one that has promised more than there is.
func usualRequests(requests []request) (out pair, ok bool) {
	out = pair{math.MinInt64, math.MinInt64}
	for _, w := range requests {
		switch w.id {
		case cluster.CPU:
			out.cpu = w.value
		case cluster.Memory:
			out.memory = w.value
		default:
			return out, false
		}
	}
	return out, true
}

// EvalNodes implements framework.ManyNodesRule.
func (r *fitRule) EvalNodes(nodes []*cluster.Node, weight int32, scores []int32, rejected []bool) {
	scores, rejected = scores[:len(nodes)], rejected[:len(nodes)]
	if !r.usual {
		evalOneByOne(r, nodes, weight, scores, rejected)
		return
	}
	requests, adds := r.requested, pair{r.adds[0], r.adds[1]}
	for i, n := range nodes {
		if rejected[i] {
			continue
		}
		cpu, memory := n.Allocatable.CPU(), n.Allocatable.Memory()
		if int64(len(n.Pods)) >= n.AllowedPods || requests.cpu > cpu-n.Requested.CPU() || requests.memory > memory-n.Requested.Memory() {
			rejected[i] = true
			continue
		}
		if cpu == 0 || memory == 0 {
			scores[i] += int32(r.ScoreNode(n)) * weight
			continue
		}
		score := (freePercent(n.NonZero[0]+adds.cpu, cpu) + freePercent(n.NonZero[1]+adds.memory, memory)) / 2
		scores[i] += int32(score) * weight
	}
}

// freePercent returns how much of what is allocatable, which is above 0, is free, in percent: cut.
func freePercent(requested, allocatable int64) uint32 {
	return uint32(uint64(allocatable-min(requested, allocatable)) * framework.MaxScore / uint64(allocatable))
}

// EvalNodes implements framework.ManyNodesRule.
func (r *balancedRule) EvalNodes(nodes []*cluster.Node, weight int32, scores []int32, rejected []bool) {
	scores, rejected = scores[:len(nodes)], rejected[:len(nodes)]
	if !r.usual {
		evalOneByOne(r, nodes, weight, scores, rejected)
		return
	}
	adds := pair{r.adds[0], r.adds[1]}
	for i, n := range nodes {
		if rejected[i] {
			continue
		}
		cpu, memory := n.Allocatable.CPU(), n.Allocatable.Memory()
		if cpu == 0 || memory == 0 {
			_, score := r.EvalNode(n)
			scores[i] += int32(score) * weight
			continue
		}
		usedCPU, usedMemory, ofCPU, ofMemory := n.Requested.CPU(), n.Requested.Memory(), float64(cpu), float64(memory)
		with := evennessOfTwo(float64(min(usedCPU+adds.cpu, cpu))/ofCPU, float64(min(usedMemory+adds.memory, memory))/ofMemory)
		without := evennessOfTwo(float64(min(usedCPU, cpu))/ofCPU, float64(min(usedMemory, memory))/ofMemory)
		const half = framework.MaxScore / 2
		scores[i] += int32(half+(half+with-without)/2) * weight
	}
}

// evalOneByOne is EvalNodes by EvalNode.
func evalOneByOne(r framework.LocalRule, nodes []*cluster.Node, weight int32, scores []int32, rejected []bool) {
	for i, n := range nodes {
		if rejected[i] {
			continue
		}
		code, score := r.EvalNode(n)
		rejected[i] = code != framework.OK
		scores[i] += int32(score) * weight
	}
}
