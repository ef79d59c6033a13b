package framework

import "github.com/berthproject/berth/core/cluster"

// OnlyScores returns a plugin whose rules reject nothing, for configurations
// that enable it for scoring and not for filtering.
func OnlyScores(p Plugin) Plugin {
	out := onlyScores{p}
	if r, ok := p.(TermReader); ok {
		return struct {
			onlyScores
			TermReader
		}{out, r}
	}
	if r, ok := p.(Reclassifier); ok {
		return struct {
			onlyScores
			Reclassifier
		}{out, r}
	}
	return out
}

type onlyScores struct{ Plugin }

// For implements Plugin.
func (o onlyScores) For(pod *cluster.Pod, state *cluster.State) (Rules, *Reason) {
	rules, _ := o.Plugin.For(pod, state)
	if rules.Local != nil {
		rules.Local = lenientLocal{rules.Local}
	}
	if rules.Group != nil {
		rules.Group = neverFilteringGroup{rules.Group}
	}
	return rules, nil
}

// Scorer is implemented by local rules whose score of a node that they reject
// isn't 0.
type Scorer interface{ ScoreNode(n *cluster.Node) int64 }

type lenientLocal struct{ LocalRule }

// EvalNode implements LocalRule.
func (l lenientLocal) EvalNode(n *cluster.Node) (Code, int64) {
	if s, ok := l.LocalRule.(Scorer); ok {
		return OK, s.ScoreNode(n)
	}
	_, score := l.LocalRule.EvalNode(n)
	return OK, score
}

type neverFilteringGroup struct{ GroupRule }

// Filter implements GroupRule.
func (neverFilteringGroup) Filter(_ *Groups, out []Code) { clear(out) }

// NeverFilters implements NeverFilters.
func (neverFilteringGroup) NeverFilters() bool { return true }

// Release implements Releaser.
func (l neverFilteringGroup) Release(s *cluster.State) {
	if r, ok := l.GroupRule.(Releaser); ok {
		r.Release(s)
	}
}

// Raw implements RawScorer.
func (l neverFilteringGroup) Raw(g *Groups, out []int64) {
	if r, ok := l.GroupRule.(RawScorer); ok {
		r.Raw(g, out)
	}
}
