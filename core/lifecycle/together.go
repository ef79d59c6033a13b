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
// do so in both orders. Devices aren't alike: they are taken in the order in which the pods were
// nominated, whoever is asked about, and of pods of one priority a later one takes nothing from an
// earlier one (scheduler.FitsNominated).
func FitTogether(s *cluster.State, scheduler Scheduler, n *cluster.Node) bool {
	mark := s.Mark()
	defer s.Rollback(mark)
	pods, ok := inTurn(s, n)
	return ok && placeAll(s, scheduler, n, pods)
}

// FitBeside reports whether a node takes further pods one after the other when all that are
// nominated to it are there. Then it takes each of them beside all others; where that doesn't
// follow, it returns false, as FitTogether.
func FitBeside(s *cluster.State, scheduler Scheduler, n *cluster.Node, pods []*cluster.Pod) bool {
	mark := s.Mark()
	defer s.Rollback(mark)
	there, ok := inTurn(s, n)
	if !ok || !samePriority(s, there, pods) {
		return false
	}
	for _, p := range there {
		if e := scheduler.Engine(p); e != nil {
			e.PlaceNominated(p, n.Index)
		} else {
			s.PlaceAt(p, n.Index) // another scheduler's
		}
	}
	return placeAll(s, scheduler, n, pods)
}

// inTurn returns the pods nominated to a node, in the order in which they were if some claim devices; ok is
// false when these are of several priorities.
func inTurn(s *cluster.State, n *cluster.Node) (pods []*cluster.Pod, ok bool) {
	pods = slices.Clone(n.Nominated)
	if !slices.ContainsFunc(pods, s.ClaimsDevices) {
		return pods, true
	}
	s.SortNominated(pods)
	return pods, samePriority(s, pods, nil)
}

// samePriority reports whether those pods of two lists that claim devices are of one priority: about a pod the
// rules are asked as if those of lower priority had no devices.
func samePriority(s *cluster.State, a, b []*cluster.Pod) bool {
	var first *cluster.Pod
	for _, list := range [...][]*cluster.Pod{a, b} {
		for _, p := range list {
			switch {
			case !s.ClaimsDevices(p):
			case first == nil:
				first = p
			case p.Priority != first.Priority:
				return false
			}
		}
	}
	return true
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
		e.PlaceNominated(p, n.Index)
	}
	return true
}
