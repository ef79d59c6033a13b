package framework

import "github.com/berthproject/berth/core/cluster"

// StaticScore is the common part of group rules that only normalise a raw
// score of the node's object: kube-scheduler's DefaultNormalizeScore over the
// feasible nodes. Embed it and add StaticKey and Explain.
type StaticScore struct{ Reverse bool }

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

// Score implements GroupRule. Raw scores are expected not to be negative.
func (s StaticScore) Score(g *Groups, weight int64, out []int64) {
	var top int64
	for i, raw := range g.Static {
		if raw != 0 && g.Nodes[i] != 0 {
			top = max(top, int64(raw))
		}
	}
	if top == 0 { // usual: no node stands out
		if s.Reverse {
			for i := range out {
				out[i] += weight * MaxScore
			}
		}
		return
	}
	for i, raw := range g.Static {
		score := MaxScore * int64(raw) / top
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
