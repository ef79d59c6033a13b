package engine_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/internal/test/testkit"
)

// A plugin with both rules has one score, one without weight has none; raw scores are
// before weight and normalising.
func TestScoresByPluginAddUpToTheTotal(t *testing.T) {
	s := nodes(testkit.Node("a").Zone("a"), testkit.Node("b").Zone("b"), testkit.Node("out").Zone("b"))
	local := func(a, b int64) framework.LocalRule {
		return &localScript{reads: framework.ReadsObject, scores: map[string]int64{"a": a, "b": b}}
	}
	zones := func() framework.GroupRule {
		return &groupScript{state: s, key: v1.LabelTopologyZone, scores: map[string]int64{"a": 7, "b": 9}}
	}
	e := testkit.Must(engine.New(s, &framework.Profile{Plugins: []framework.Weighted{
		weighted(2, &scripted{name: "Both", rules: framework.Rules{Local: local(10, 20), Group: zones()}}),
		weighted(0, &scripted{name: "Filter", rules: framework.Rules{Local: local(50, 60), Group: zones()}}),
		weighted(3, &scripted{name: "Group", rules: framework.Rules{Group: zones()}}),
		weighted(1, &scripted{name: "Local", rules: framework.Rules{Local: local(1, 0)}}),
	}}, engine.Options{}))
	c := e.Class(parsed(s, testkit.Pod("p")))
	want := map[string][]engine.PluginScore{
		"a": {{Plugin: "Both", Raw: 10 - 7, Score: 2*10 + 2*7}, {Plugin: "Local", Raw: 1, Score: 1}, {Plugin: "Group", Raw: -7, Score: 3 * 7}},
		"b": {{Plugin: "Both", Raw: 20 - 9, Score: 2*20 + 2*9}, {Plugin: "Local"}, {Plugin: "Group", Raw: -9, Score: 3 * 9}},
	}
	scores := e.Scores(c)
	if len(scores) != len(want) {
		t.Errorf("scores of %d nodes, want those of the two that take the class", len(scores))
	}
	for _, a := range e.Answers(c) {
		name := s.Node(a.Node).Name
		if got := scores[a.Node]; !slices.Equal(got, want[name]) {
			t.Errorf("node %s scores %+v, want %+v", name, got, want[name])
		}
		total := int64(0)
		for _, x := range scores[a.Node] {
			total += x.Score
		}
		if a.OK != (want[name] != nil) || a.Score != total {
			t.Errorf("node %s: taken %v with a total of %d; its scores add up to %d", name, a.OK, a.Score, total)
		}
	}
}

// The breakdown of a choice has the same scores without the raw ones.
func TestAccountHasTheScoresOfTheChosenNode(t *testing.T) {
	s := nodes(testkit.Node("a").Zone("a"), testkit.Node("b").Zone("b"))
	rules := framework.Rules{
		Local: &localScript{reads: framework.ReadsObject, scores: map[string]int64{"a": 10, "b": 20}},
		Group: &groupScript{state: s, key: v1.LabelTopologyZone, scores: map[string]int64{"a": 90, "b": 9}},
	}
	e := testkit.Must(engine.New(s, &framework.Profile{Plugins: []framework.Weighted{
		weighted(2, &scripted{name: "Both", rules: rules}), weighted(0, &scripted{name: "Filter", rules: rules})}}, engine.Options{}))
	p := parsed(s, testkit.Pod("p"))
	best, a, _ := e.PlaceWithBreakdown(e.Class(p), p)
	if want := []engine.PluginScore{{Plugin: "Both", Score: 200}}; nodeName(s, best.Node) != "a" || !slices.Equal(a.Scores, want) {
		t.Errorf("node %s with %v, want a with %v", nodeName(s, best.Node), a.Scores, want)
	}
	if on := s.NodeOf(p.UID); on == nil || on.Name != "a" {
		t.Errorf("the pod is on %v, want a", on)
	}
}
