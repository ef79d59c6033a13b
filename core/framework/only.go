package framework

import "github.com/berthproject/berth/core/cluster"

// OnlyScores returns a plugin whose rules reject nothing, for configurations
// that enable it for scoring and not for filtering.
//
// The plugin's answers are wrapped: codes become OK, scores stay. Of the optional
// interfaces those that concern scores are passed on (TermReader, Reclassifier;
// Releaser and RawScorer of its group rule). Those about rejections are not: Waker,
// PartsNeeder, Narrower, PodReader and Hinter.
func OnlyScores(p Plugin) Plugin {
	out := onlyScores{p}
	terms, readsTerms := p.(TermReader)
	changes, reclassifies := p.(Reclassifier)
	switch {
	case readsTerms && reclassifies:
		return struct {
			onlyScores
			TermReader
			Reclassifier
		}{out, terms, changes}
	case readsTerms:
		return struct {
			onlyScores
			TermReader
		}{out, terms}
	case reclassifies:
		return struct {
			onlyScores
			Reclassifier
		}{out, changes}
	}
	return out
}

type onlyScores struct{ Plugin }

// For implements Plugin. That the plugin rejects the class everywhere counts for
// nothing; then it usually has no rules to score by either.
func (o onlyScores) For(pod *cluster.Pod, state *cluster.State) (Rules, *Reason) {
	rules, _ := o.Plugin.For(pod, state)
	if rules.Local != nil {
		rules.Local = scoringLocal{rules.Local}
	}
	if rules.Group != nil {
		rules.Group = scoringGroup{rules.Group}
	}
	return rules, nil
}

// scoringLocal is a local rule that rejects nothing.
type scoringLocal struct{ LocalRule }

// EvalNode implements LocalRule. A node that the rule rejects has the score that the
// rule gives with its rejection, unless the rule is a Scorer.
func (l scoringLocal) EvalNode(n *cluster.Node) (Code, int64) {
	if s, ok := l.LocalRule.(Scorer); ok {
		return OK, s.ScoreNode(n)
	}
	_, score := l.LocalRule.EvalNode(n)
	return OK, score
}

// Count implements Counter.
func (scoringLocal) Count(*cluster.Node) int { return Unlimited }

// scoringGroup is a group rule that rejects nothing.
type scoringGroup struct{ GroupRule }

// Filter implements GroupRule.
func (scoringGroup) Filter(_ *Groups, out []Code) { clear(out) }

// NeverFilters implements NeverFilters.
func (scoringGroup) NeverFilters() bool { return true }

// Release implements Releaser.
func (l scoringGroup) Release(s *cluster.State) {
	if r, ok := l.GroupRule.(Releaser); ok {
		r.Release(s)
	}
}

// Raw implements RawScorer; without a raw score of the rule's, out stays as it is.
func (l scoringGroup) Raw(g *Groups, out []int64) {
	if r, ok := l.GroupRule.(RawScorer); ok {
		r.Raw(g, out)
	}
}
