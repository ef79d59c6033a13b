package noderesources

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// This file scores the nodes of a topology domain for a pod group. As in kube-scheduler 1.37 all that is
// requested on them, with the members, counts against all that they have, and the fullest is the best
// (MostAllocated) whatever the strategy for single pods: what a group leaves free of a domain is of little use to
// the next group.

var _ framework.PlacementScorer = (*Fit)(nil)

// placement implements framework.Placement.
type placement struct {
	resources []scored
	adds      []int64 // what the members add, by resource
}

// Placement implements framework.PlacementScorer. It costs O(members × resources).
func (f *Fit) Placement(members []*cluster.Pod) framework.Placement {
	p := &placement{resources: f.resources, adds: make([]int64, len(f.resources))}
	for _, m := range members {
		for i, r := range f.resources {
			p.adds[i] += m.Scored.At(r.id)
		}
	}
	return p
}

// ScoreNodes implements framework.Placement. It costs O(nodes × resources).
func (p *placement) ScoreNodes(s *cluster.State, nodes []cluster.NodeIndex) int64 {
	strategy := scoring{strategy: MostAllocated}
	var sum, weights int64
	for i := range p.resources {
		r := &p.resources[i]
		if p.adds[i] == 0 && r.id.Scalar() {
			continue // the members don't request it
		}
		requested, allocatable := p.adds[i], int64(0)
		for _, n := range nodes {
			used, has := r.withPod(s.Node(n), 1) // 1, so that a scalar resource counts
			if has > 0 {
				requested, allocatable = requested+used-1, allocatable+has
			}
		}
		if allocatable > 0 {
			sum += strategy.resourceScore(requested, allocatable) * r.weight
			weights += r.weight
		}
	}
	if weights == 0 {
		return 0
	}
	return sum / weights
}
