// Package noderesources holds the two plugins about requests and allocatable
// resources: NodeResourcesFit (fit.go, its strategies in strategy.go) and
// NodeResourcesBalancedAllocation (balanced.go). Both are local rules that read
// sums which the state keeps for each node, so a node is evaluated in
// O(resources), without allocation.
package noderesources

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
)

// ResourceWeight is a resource that counts in a score.
type ResourceWeight struct {
	Name   v1.ResourceName
	Weight int64
}

// DefaultResources are the resources that both plugins score by unless told
// otherwise.
func DefaultResources() []ResourceWeight {
	return []ResourceWeight{{v1.ResourceCPU, 1}, {v1.ResourceMemory, 1}}
}

// MaxScoredResources is the longest list of resources that a plugin may score by.
// Whoever makes a plugin checks it: its arrays have so many places.
const MaxScoredResources = 16

// scored is a ResourceWeight with what counts as used.
type scored struct {
	id     cluster.ResourceID
	weight int64
	// nonZero is where Node.NonZero has the resource, -1 where what pods request counts.
	nonZero int
}

// usage is what counts as used of CPU and memory on a node.
type usage uint8

const (
	// countsRequests: what the pods request.
	countsRequests usage = iota
	// countsDefaults: the same, with 100m CPU and 200Mi of memory for a container
	// that doesn't request the one or the other. A node full of such pods would
	// look empty otherwise.
	countsDefaults
)

func resolve(list []ResourceWeight, counts usage) []scored {
	out := make([]scored, len(list))
	for i, w := range list {
		out[i] = scored{cluster.ResourceOf(w.Name), w.Weight, -1}
		if counts == countsDefaults {
			out[i].nonZero = slices.Index([]v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory}, w.Name)
		}
	}
	return out
}

// amounts returns a pod's quantities of the scored resources.
func amounts(of *cluster.Resources, resources []scored) []int64 {
	out := make([]int64, len(resources))
	for i, r := range resources {
		out[i] = of.At(r.id)
	}
	return out
}

// withPod returns what is requested of the resource on the node together with what
// a pod adds, and what is allocatable. Both are 0 where the resource doesn't count:
// the node has none of it, or it is a scalar one that the pod doesn't request.
func (s *scored) withPod(n *cluster.Node, adds int64) (requested, allocatable int64) {
	if adds == 0 && s.id.Scalar() {
		return 0, 0
	}
	allocatable = n.Allocatable.At(s.id)
	if allocatable == 0 {
		return 0, 0
	}
	if s.nonZero >= 0 {
		return n.NonZero[s.nonZero] + adds, allocatable
	}
	return n.Requested.At(s.id) + adds, allocatable
}
