package noderesources

import (
	"math"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// BalancedName is the plugin's name in kube-scheduler configuration.
const BalancedName = "NodeResourcesBalancedAllocation"

// Balanced implements framework.Plugin: it prefers nodes whose resources the pod
// makes more evenly used than they were. It rejects nothing.
type Balanced struct{ resources []scored }

var _ framework.Plugin = (*Balanced)(nil)

// NewBalanced returns the plugin over the given resources, whose weights don't
// count; nil means CPU and memory. The schema must be that of the states it will
// see.
func NewBalanced(resources []ResourceWeight) *Balanced {
	if len(resources) == 0 {
		resources = DefaultResources()
	}
	return &Balanced{resolve(resources, countsRequests)}
}

// Name implements framework.Plugin.
func (*Balanced) Name() string { return BalancedName }

// Sign implements framework.Plugin.
func (*Balanced) Sign(pod *cluster.Pod, _ *cluster.State, local, _ *framework.Signature) {
	signVector(&pod.Request, local)
}

// For implements framework.Plugin. A pod that requests none of the resources
// isn't scored: such pods would all go to one node (kubernetes issue 129138).
func (b *Balanced) For(pod *cluster.Pod, _ *cluster.State) (framework.Rules, *framework.Reason) {
	adds := amounts(&pod.Request, b.resources)
	for _, v := range adds {
		if v != 0 {
			return framework.Rules{Local: &balancedRule{b.resources, adds, ofCPUAndMemory(b.resources)}}, nil
		}
	}
	return framework.Rules{}, nil
}

// balancedRule implements framework.LocalRule for the pods of one class.
type balancedRule struct {
	resources []scored
	adds      []int64 // what the pod adds to each of resources
	usual     bool    // see usual.go
}

var _ framework.ManyNodesRule = (*balancedRule)(nil)

// Reads implements framework.LocalRule.
func (*balancedRule) Reads() framework.Aspects { return framework.ReadsObject | framework.ReadsPods }

// EvalNode implements framework.LocalRule. Evenness with the pod and without it is
// 50 to 100, so their difference is −50 to 50; it is mapped to 50 to 100. A pod
// that changes nothing scores 75. Binding more pods may raise the score.
func (r *balancedRule) EvalNode(n *cluster.Node) (framework.Code, int64) {
	if len(r.resources) <= 2 { // as by default; clearing longer arrays costs as much as the rest
		var with, without [2]float64
		return framework.OK, r.score(n, with[:], without[:])
	}
	var with, without [MaxScoredResources]float64
	return framework.OK, r.score(n, with[:], without[:])
}

// score returns a node's score. The slices have room for the used parts with the pod and without it.
func (r *balancedRule) score(n *cluster.Node, with, without []float64) int64 {
	k := 0
	for i := range r.resources {
		requested, allocatable := r.resources[i].withPod(n, r.adds[i])
		if allocatable == 0 {
			continue
		}
		with[k] = min(float64(requested)/float64(allocatable), 1)
		without[k] = min(float64(requested-r.adds[i])/float64(allocatable), 1)
		k++
	}
	const half = framework.MaxScore / 2
	return half + (half+evenness(with[:k])-evenness(without[:k]))/2
}

// Count implements framework.Counter.
func (*balancedRule) Count(*cluster.Node) int { return framework.Unlimited }

// Explain is never asked: nothing is rejected.
func (*balancedRule) Explain(*cluster.Node) *framework.Reason { return nil }

// evenness is 100 × (1 − the standard deviation of the fractions), in
// kube-scheduler's order of floating-point operations. Fractions are 0 to 1.
func evenness(fractions []float64) int64 {
	var deviation float64
	switch {
	case len(fractions) == 2:
		return evennessOfTwo(fractions[0], fractions[1])
	case len(fractions) > 2:
		var total, sum float64
		for _, f := range fractions {
			total += f
		}
		mean := total / float64(len(fractions))
		for _, f := range fractions {
			sum += float64((f - mean) * (f - mean)) // not fused, on any machine
		}
		deviation = math.Sqrt(sum / float64(len(fractions)))
	}
	return int64((1 - deviation) * framework.MaxScore)
}

// evennessOfTwo is evenness of two fractions.
func evennessOfTwo(a, b float64) int64 {
	deviation := math.Abs((a - b) / 2)
	return int64((1 - deviation) * framework.MaxScore)
}
