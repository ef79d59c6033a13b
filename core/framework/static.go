package framework

import "github.com/berthproject/berth/core/cluster"

// StaticScore is the common part of group rules that only normalise a raw
// score of the node's object: kube-scheduler's DefaultNormalizeScore over the
// feasible nodes. Embed it and add StaticKey, which is the raw score and isn't
// negative, and Explain, which is never called.
//
// The highest raw score among the candidates becomes MaxScore, 0 stays 0, the others
// are in proportion, rounded down. Reverse turns that around.
type StaticScore struct {
	Reverse bool // the lowest raw score is best
}

// TopologyKeys implements GroupRule: none.
func (StaticScore) TopologyKeys() []string { return nil }

// HostFacts implements GroupRule: none.
func (StaticScore) HostFacts() []*cluster.Fact { return nil }

// HostKey implements GroupRule: 0.
func (StaticScore) HostKey(cluster.NodeIndex) int32 { return 0 }

// NeverFilters implements NeverFilters.
func (StaticScore) NeverFilters() bool { return true }

// Filter implements GroupRule: everything passes.
func (StaticScore) Filter(_ *Groups, out []Code) { clear(out) }

// Score implements GroupRule.
func (s StaticScore) Score(g *Groups, weight int64, out []int64) {
	var highest int64 // of groups with candidates
	for i, raw := range g.Static {
		if raw != 0 && g.Nodes[i] != 0 {
			highest = max(highest, int64(raw))
		}
	}
	if highest == 0 { // usual: all raw scores are 0, and there is nothing to divide by
		if s.Reverse {
			for i := range out {
				out[i] += weight * MaxScore
			}
		}
		return
	}
	for i, raw := range g.Static {
		score := MaxScore * int64(raw) / highest
		if s.Reverse {
			score = MaxScore - score
		}
		out[i] += weight * score
	}
}

// Raw implements RawScorer.
func (StaticScore) Raw(g *Groups, out []int64) {
	for i, raw := range g.Static {
		out[i] = int64(raw)
	}
}
