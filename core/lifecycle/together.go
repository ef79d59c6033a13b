package lifecycle

import (
	"slices"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// Scheduler is what stand-ins ask of the scheduler.
type Scheduler interface {
	Responsible(*cluster.Pod) bool
	Engine(*cluster.Pod) *engine.Engine
}

// FitTogether reports whether a node takes all pods nominated to it one after the other. Then it
// takes each of them beside the others, in O(pods) where asking for each takes O(pods²). Where
// that doesn't follow, since rules look beyond the node, or a pod is another scheduler's, it
// returns false, and each has to be checked by itself.
//
// It follows from what rules that look at one node have in common: what is taken of a node by
// pods together is the same in whatever order they come, and pods that keep each other away
// do so in both orders.
func FitTogether(s *cluster.State, scheduler Scheduler, n *cluster.Node) bool {
	mark := s.Mark()
	defer s.Rollback(mark)
	return placeAll(s, scheduler, n, slices.Clone(n.Nominated))
}

// FitBeside reports whether a node takes further pods one after the other when all that are
// nominated to it are there. Then it takes each of them beside all others; where that doesn't
// follow, it returns false, as FitTogether.
func FitBeside(s *cluster.State, scheduler Scheduler, n *cluster.Node, pods []*cluster.Pod) bool {
	mark := s.Mark()
	defer s.Rollback(mark)
	for _, p := range slices.Clone(n.Nominated) {
		s.PlaceAt(p, n.Index)
	}
	return placeAll(s, scheduler, n, pods)
}

// placeAll places pods on a node as long as each fits, and reports whether all did.
func placeAll(s *cluster.State, scheduler Scheduler, n *cluster.Node, pods []*cluster.Pod) bool {
	if autoscaler.Going(n.NodeInfo) {
		return false
	}
	for _, p := range pods {
		if !scheduler.Responsible(p) {
			return false
		}
		e := scheduler.Engine(p)
		class := e.Class(p)
		if e.LooksBeyondNode(class) || !e.FitsBare(class, n) {
			return false
		}
		s.PlaceAt(p, n.Index)
	}
	return true
}
