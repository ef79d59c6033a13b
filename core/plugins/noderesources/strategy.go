package noderesources

import (
	"math"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// This file has the scoring strategies of NodeResourcesFit. Each scores one
// resource by what is requested of it, with the pod, and what is allocatable; a
// node's score is the weighted mean over its resources.

// Strategy is how NodeResourcesFit scores.
type Strategy string

// The strategies of kube-scheduler.
const (
	LeastAllocated           Strategy = "LeastAllocated"           // the free part
	MostAllocated            Strategy = "MostAllocated"            // the requested part
	RequestedToCapacityRatio Strategy = "RequestedToCapacityRatio" // a curve over the requested part
)

// scoring is a strategy made ready. It is called directly, not through a
// function value, so that its arguments stay on the caller's stack.
type scoring struct {
	strategy Strategy
	curve    framework.Curve // of RequestedToCapacityRatio
}

func newScoring(args FitArgs) scoring {
	return scoring{strategy: args.Strategy, curve: framework.NewCurve(args.Shape)}
}

// score is the weighted mean over the resources that the node has (allocatable isn't 0), when a pod
// adds something to what is requested there; 0 when it has none of them. Under RequestedToCapacityRatio a resource
// that scores 0 doesn't count in the mean, and the mean is rounded.
func (s *scoring) score(n *cluster.Node, resources []scored, adds []int64) int64 {
	ratio := s.strategy == RequestedToCapacityRatio
	var sum, weights int64
	for i := range resources {
		requested, allocatable := resources[i].withPod(n, adds[i])
		if allocatable == 0 {
			continue
		}
		one := s.resourceScore(requested, allocatable)
		if ratio && one <= 0 {
			continue
		}
		sum += one * resources[i].weight
		weights += resources[i].weight
	}
	switch {
	case weights == 0:
		return 0
	case ratio:
		return int64(math.Round(float64(sum) / float64(weights)))
	}
	return sum / weights
}

// resourceScore scores one resource, 0 to 100. More may be requested than is
// allocatable: defaults for containers without requests count here and not for
// filtering.
func (s *scoring) resourceScore(requested, allocatable int64) int64 {
	requested = min(requested, allocatable)
	switch s.strategy {
	case MostAllocated:
		return requested * framework.MaxScore / allocatable
	case RequestedToCapacityRatio:
		return s.curve.At(requested * 100 / allocatable)
	}
	return (allocatable - requested) * framework.MaxScore / allocatable
}
