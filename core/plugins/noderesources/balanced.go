package noderesources

import (
	"math"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// BalancedName is the plugin's name in kube-scheduler configuration.
const BalancedName = "NodeResourcesBalancedAllocation"

// Balanced implements framework.Plugin: it prefers nodes whose resources the
// pod makes more evenly used than they were.
type Balanced struct{ resources []scored }

var _ framework.Plugin = (*Balanced)(nil)

// NewBalanced returns the rule over the given resources; nil means CPU and
// memory.
func NewBalanced(schema *cluster.Schema, resources []ResourceWeight) *Balanced {
	if len(resources) == 0 {
		resources = DefaultResources()
	}
	return &Balanced{resolve(schema, resources)}
}

// Name implements framework.Plugin.
func (*Balanced) Name() string { return BalancedName }

// Sign implements framework.Plugin.
func (*Balanced) Sign(pod *cluster.Pod, _ *cluster.State, local, _ *framework.Signature) {
	signVector(pod.Request, local)
}

// For implements framework.Plugin. A pod that asks for none of the resources
// isn't scored, as in kubernetes issue 129138.
func (b *Balanced) For(pod *cluster.Pod, _ *cluster.State) (framework.Rules, *framework.Reason) {
	ask := asks(pod, b.resources, false)
	for _, v := range ask {
		if v != 0 {
			return framework.Rules{Local: &balancedRule{b.resources, ask}}, nil
		}
	}
	return framework.Rules{}, nil
}

type balancedRule struct {
	resources []scored
	asks      []int64
}

func (*balancedRule) Reads() framework.Aspects { return framework.ReadsObject | framework.ReadsPods }

// EvalNode maps the change of balance, -50 to 50, to 50 to 100.
func (r *balancedRule) EvalNode(n *cluster.Node) (framework.Code, int64) {
	var with, without [maxScored]float64
	k := 0
	for i := range r.resources {
		requested, allocatable := r.resources[i].withPod(n, r.asks[i], false)
		if allocatable == 0 {
			continue
		}
		with[k] = min(float64(requested)/float64(allocatable), 1)
		without[k] = min(float64(requested-r.asks[i])/float64(allocatable), 1)
		k++
	}
	const half = framework.MaxScore / 2
	return framework.OK, half + (half+evenness(with[:k])-evenness(without[:k]))/2
}

func (*balancedRule) Explain(*cluster.Node) *framework.Reason { return nil }

// evenness is 100 for equal fractions, falling with their standard deviation.
func evenness(fractions []float64) int64 {
	var deviation float64
	switch {
	case len(fractions) == 2:
		deviation = math.Abs((fractions[0] - fractions[1]) / 2)
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
