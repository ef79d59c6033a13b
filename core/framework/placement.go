package framework

import "github.com/berthproject/berth/core/cluster"

// PlacementScorer is implemented by plugins that say how good it is for a pod group to be on some nodes, as
// kube-scheduler's PlacementScore plugins do. It decides among the topology domains of a group that requires one.
type PlacementScorer interface {
	// Placement returns what members of a group add to the nodes that they go to, made ready to be compared.
	Placement(members []*cluster.Pod) Placement
}

// Placement scores sets of nodes for the same members. It is valid until the state changes.
type Placement interface {
	// ScoreNodes returns a score, 0 to MaxScore, of nodes on which the members aren't yet. It counts as a bound
	// for that of fewer members: where it isn't one, as with an extended resource that only those request who are
	// left out, a better domain may not be tried.
	ScoreNodes(s *cluster.State, nodes []cluster.NodeIndex) int64
}

// PlacementScorer returns the plugin that scores placements, nil when the profile has none.
func (p *Profile) PlacementScorer() PlacementScorer {
	for i := range p.Plugins {
		if s, ok := p.Plugins[i].Plugin.(PlacementScorer); ok {
			return s
		}
	}
	return nil
}

// Placement returns what members of a group add to the nodes that they go to, for the plugin that scores
// placements; nil when the profile has none.
func (p *Profile) Placement(members []*cluster.Pod) Placement {
	if s := p.PlacementScorer(); s != nil {
		return s.Placement(members)
	}
	return nil
}

// MaxCompared is how much more work is done, in the units of those who search, to find a better domain for a pod
// group when one was found that holds enough members.
const MaxCompared = 4096

// PlacementScore returns the score, 0 to twice MaxScore, of nodes that hold so many members of a group where the
// best hold most, which is at least 1, and of which Placement says fill: the sum of kube-scheduler's
// PodGroupPodsCount and NodeResourcesFit, both of weight 1.
func PlacementScore(holds, most int, fill int64) int64 {
	return MaxScore*int64(holds)/int64(most) + fill
}
