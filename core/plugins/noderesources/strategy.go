package noderesources

import (
	"math"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Strategy is how NodeResourcesFit scores.
type Strategy string

// The strategies of kube-scheduler.
const (
	LeastAllocated           Strategy = "LeastAllocated"
	MostAllocated            Strategy = "MostAllocated"
	RequestedToCapacityRatio Strategy = "RequestedToCapacityRatio"
)

// ShapePoint is a point of RequestedToCapacityRatio's curve: utilization 0 to
// 100 percent, score 0 to 10.
type ShapePoint struct{ Utilization, Score int64 }

// maxScored is how many resources may count in a score.
const maxScored = 16

// MaxScoredResources is the longest list of resources a strategy may score by.
const MaxScoredResources = maxScored

// scored is a ResourceWeight resolved against a schema.
type scored struct {
	id     cluster.ResourceID
	weight int64
}

func resolve(schema *cluster.Schema, list []ResourceWeight) []scored {
	out := make([]scored, len(list))
	for i, w := range list {
		out[i] = scored{schema.ID(w.Name), w.Weight}
	}
	return out
}

// asks returns what the pod adds to each scored resource. With defaults, CPU
// and memory count 100m and 200Mi for containers that request none.
func asks(pod *cluster.Pod, resources []scored, defaults bool) []int64 {
	out := make([]int64, len(resources))
	for i, r := range resources {
		if defaults {
			out[i] = pod.Scored.At(r.id)
			continue
		}
		out[i] = pod.Request.At(r.id)
	}
	return out
}

// withPod returns the node's request including the pod, and its allocatable;
// both 0 where the resource doesn't count: the node has none of it, or it is a
// scalar one that the pod doesn't ask for.
func (s *scored) withPod(n *cluster.Node, ask int64, defaults bool) (requested, allocatable int64) {
	if ask == 0 && s.id.Scalar() {
		return 0, 0
	}
	allocatable = n.Allocatable.At(s.id)
	if allocatable == 0 {
		return 0, 0
	}
	if defaults && s.id <= cluster.Memory {
		return n.NonZero[s.id] + ask, allocatable
	}
	return n.Requested.At(s.id) + ask, allocatable
}

// scoring is a strategy made ready. It is called directly, not through a
// function value, so that its arguments stay on the caller's stack.
type scoring struct {
	strategy Strategy
	line     []ShapePoint // RequestedToCapacityRatio's, with scores of 0 to 100
}

func newScoring(args FitArgs) scoring {
	s := scoring{strategy: args.Strategy}
	for _, p := range args.Shape {
		s.line = append(s.line, ShapePoint{p.Utilization, p.Score * framework.MaxScore / 10})
	}
	return s
}

// score is the weighted mean over the resources that the node has. Under
// RequestedToCapacityRatio, a resource that scores 0 doesn't count in the mean,
// and the mean is rounded.
func (s *scoring) score(resources []scored, requested, allocatable []int64) int64 {
	ratio := s.strategy == RequestedToCapacityRatio
	var sum, weights int64
	for i := range resources {
		if allocatable[i] == 0 {
			continue
		}
		one := s.one(requested[i], allocatable[i])
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

// one scores one resource.
func (s *scoring) one(requested, allocatable int64) int64 {
	switch s.strategy {
	case MostAllocated:
		return min(requested, allocatable) * framework.MaxScore / allocatable
	case RequestedToCapacityRatio:
		if requested > allocatable {
			return onLine(s.line, 100)
		}
		return onLine(s.line, requested*100/allocatable)
	}
	if requested > allocatable {
		return 0
	}
	return (allocatable - requested) * framework.MaxScore / allocatable
}

func onLine(line []ShapePoint, at int64) int64 {
	for i, p := range line {
		if at > p.Utilization {
			continue
		}
		if i == 0 {
			return p.Score
		}
		q := line[i-1]
		return q.Score + (p.Score-q.Score)*(at-q.Utilization)/(p.Utilization-q.Utilization)
	}
	return line[len(line)-1].Score
}
