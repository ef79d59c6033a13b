package framework_test

import (
	"slices"
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/internal/test/testkit"
)

// full is a plugin that rejects and scores with both rules, and rejects every class.
type full struct {
	local framework.LocalRule
	group *fullGroup
}

func (*full) Name() string                                                         { return "Full" }
func (*full) WakesWhen() string                                                    { return "never" }
func (*full) Sign(_ *cluster.Pod, _ *cluster.State, local, _ *framework.Signature) { local.Int(1) }
func (p *full) For(*cluster.Pod, *cluster.State) (framework.Rules, *framework.Reason) {
	return framework.Rules{Local: p.local, Group: p.group}, &framework.Reason{Messages: []string{"no"}}
}

// finalLocal rejects every node and says 7 with it; narrows all.
type finalLocal struct{}

func (finalLocal) Reads() framework.Aspects                       { return framework.ReadsPods }
func (finalLocal) EvalNode(*cluster.Node) (framework.Code, int64) { return framework.Final, 7 }
func (finalLocal) Explain(*cluster.Node) *framework.Reason        { return nil }
func (finalLocal) NarrowsTo() []string                            { return []string{} }

// scorerLocal knows the score of a node that it rejects.
type scorerLocal struct{ finalLocal }

func (scorerLocal) ScoreNode(*cluster.Node) int64 { return 42 }

// fullGroup rejects every group, has raw scores and holds something.
type fullGroup struct {
	framework.StaticScore
	released int
}

func (*fullGroup) StaticKey(*cluster.NodeBasics) int32              { return 3 }
func (*fullGroup) NeverFilters() bool                               { return false }
func (*fullGroup) Filter(_ *framework.Groups, out []framework.Code) { out[0] = framework.Final }
func (*fullGroup) Explain(*framework.Groups, int) *framework.Reason { return nil }
func (*fullGroup) Hint(*cluster.Change) bool                        { return true }
func (r *fullGroup) Release(*cluster.State)                         { r.released++ }

func TestOnlyScoresRejectsNothingAndScores(t *testing.T) {
	schema := cluster.NewSchema()
	s := cluster.New(schema)
	s.SetNode(schema.ParseNode(testkit.Node("n").Obj(), ""))
	n := s.Node(0)
	for _, c := range []struct {
		name  string
		local framework.LocalRule
		score int64
	}{{"the score that comes with a rejection", finalLocal{}, 7}, {"the score that a Scorer knows", scorerLocal{}, 42}} {
		group := &fullGroup{}
		rules, why := framework.OnlyScores(&full{c.local, group}).For(nil, s)
		if why != nil {
			t.Errorf("%s: the class is rejected: %v", c.name, why.Messages)
		}
		if code, score := rules.Local.EvalNode(n); code != framework.OK || score != c.score {
			t.Errorf("%s: code %d and score %d, want OK and %d", c.name, code, score, c.score)
		}
		if _, ok := rules.Local.(framework.Narrower); ok {
			t.Errorf("%s: the rule still narrows", c.name)
		}
		if got := rules.Local.Reads(); got != framework.ReadsPods {
			t.Errorf("%s: it reads %d, want %d", c.name, got, framework.ReadsPods)
		}
		codes, raw := []framework.Code{framework.Reject}, []int64{0}
		g := &framework.Groups{Nodes: []int32{1}, Static: []int32{3}}
		rules.Group.Filter(g, codes)
		rules.Group.(framework.RawScorer).Raw(g, raw)
		if codes[0] != framework.OK || !rules.Group.(framework.NeverFilters).NeverFilters() {
			t.Errorf("%s: the group rule filters", c.name)
		}
		if raw[0] != 3 || rules.Group.StaticKey(nil) != 3 {
			t.Errorf("%s: raw score %d, static key %d; want 3", c.name, raw[0], rules.Group.StaticKey(nil))
		}
		rules.Group.(framework.Releaser).Release(s)
		if group.released != 1 {
			t.Errorf("%s: released %d times, want once", c.name, group.released)
		}
	}
}

// A rule without optional parts stays one that the engine can call all the same.
func TestOnlyScoresOfRulesWithoutOptionalParts(t *testing.T) {
	rules, _ := framework.OnlyScores(plain{group: plainGroup{}}).For(nil, nil)
	if rules.Local != nil {
		t.Error("a local rule came from nothing")
	}
	raw := []int64{5}
	rules.Group.(framework.RawScorer).Raw(&framework.Groups{Nodes: []int32{1}}, raw)
	rules.Group.(framework.Releaser).Release(nil)
	if !slices.Equal(raw, []int64{5}) {
		t.Errorf("raw scores are %v, want them as they were", raw)
	}
	if rules, _ := framework.OnlyScores(plain{}).For(nil, nil); rules.Group != nil {
		t.Error("a group rule came from nothing")
	}
}

type plain struct{ group framework.GroupRule }

func (plain) Name() string                                                     { return "Plain" }
func (plain) Sign(_ *cluster.Pod, _ *cluster.State, _, _ *framework.Signature) {}
func (p plain) For(*cluster.Pod, *cluster.State) (framework.Rules, *framework.Reason) {
	return framework.Rules{Group: p.group}, nil
}

type plainGroup struct{ framework.GroupRule }

type reader struct{ plain }

func (reader) ReadsTerm(*cluster.Pod, *cluster.State, *cluster.Term) bool { return true }

type reclassifier struct{ plain }

func (reclassifier) Reclassifies(*cluster.Change, *cluster.State) func(*cluster.Pod) bool {
	return func(*cluster.Pod) bool { return true }
}

type both struct {
	reader
	reclassifier
}

func (both) Name() string                                                     { return "Both" }
func (both) Sign(_ *cluster.Pod, _ *cluster.State, _, _ *framework.Signature) {}
func (both) For(*cluster.Pod, *cluster.State) (framework.Rules, *framework.Reason) {
	return framework.Rules{}, nil
}

// What makes a class's rules anew or signs its pods again still does.
func TestOnlyScoresPassesOnWhatItReads(t *testing.T) {
	for _, c := range []struct {
		plugin                   framework.Plugin
		readsTerms, reclassifies bool
	}{{plain{}, false, false}, {reader{}, true, false}, {reclassifier{}, false, true}, {both{}, true, true}, {&full{}, false, false}} {
		got := framework.OnlyScores(c.plugin)
		r, readsTerms := got.(framework.TermReader)
		x, reclassifies := got.(framework.Reclassifier)
		if readsTerms != c.readsTerms || reclassifies != c.reclassifies {
			t.Errorf("%T: reads terms %v, reclassifies %v; want %v, %v", c.plugin, readsTerms, reclassifies, c.readsTerms, c.reclassifies)
		}
		if readsTerms && !r.ReadsTerm(nil, nil, nil) || reclassifies && x.Reclassifies(nil, nil) == nil {
			t.Errorf("%T: the answers aren't the plugin's", c.plugin)
		}
		if got.Name() != c.plugin.Name() {
			t.Errorf("%T: the name is %s, want %s", c.plugin, got.Name(), c.plugin.Name())
		}
		if _, ok := got.(framework.Waker); ok {
			t.Errorf("%T: a plugin that only scores says what wakes a pod that it rejected", c.plugin)
		}
	}
}
