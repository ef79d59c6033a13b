package noderesources

import (
	"math"

	"github.com/berthproject/berth/cluster"
	"github.com/berthproject/berth/framework"
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
		if defaults && r.id <= cluster.Memory {
			out[i] = pod.NonZero[r.id]
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

func scorer(args FitArgs) func([]scored, []int64, []int64) int64 {
	switch args.Strategy {
	case MostAllocated:
		return weigh(func(requested, allocatable int64) int64 {
			return min(requested, allocatable) * framework.MaxScore / allocatable
		})
	case RequestedToCapacityRatio:
		return ratio(args.Shape)
	default:
		return weigh(func(requested, allocatable int64) int64 {
			if requested > allocatable {
				return 0
			}
			return (allocatable - requested) * framework.MaxScore / allocatable
		})
	}
}

// weigh is the weighted mean of a score over the resources the node has.
func weigh(one func(requested, allocatable int64) int64) func([]scored, []int64, []int64) int64 {
	return func(resources []scored, requested, allocatable []int64) int64 {
		var sum, weights int64
		for i := range resources {
			if allocatable[i] == 0 {
				continue
			}
			sum += one(requested[i], allocatable[i]) * resources[i].weight
			weights += resources[i].weight
		}
		if weights == 0 {
			return 0
		}
		return sum / weights
	}
}

// ratio scores along a broken line. Unlike the other strategies, a resource
// that scores 0 doesn't count in the mean, and the mean is rounded.
func ratio(shape []ShapePoint) func([]scored, []int64, []int64) int64 {
	line := make([]ShapePoint, len(shape))
	for i, p := range shape {
		line[i] = ShapePoint{p.Utilization, p.Score * framework.MaxScore / 10}
	}
	return func(resources []scored, requested, allocatable []int64) int64 {
		var sum, weights int64
		for i := range resources {
			if allocatable[i] == 0 {
				continue
			}
			used := int64(100)
			if requested[i] <= allocatable[i] {
				used = requested[i] * 100 / allocatable[i]
			}
			if score := onLine(line, used); score > 0 {
				sum += score * resources[i].weight
				weights += resources[i].weight
			}
		}
		if weights == 0 {
			return 0
		}
		return int64(math.Round(float64(sum) / float64(weights)))
	}
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
