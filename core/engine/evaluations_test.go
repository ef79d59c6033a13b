package engine_test

import (
	"slices"
	"testing"

	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/internal/test/testkit"
)

// Which plugins count a pod: those that have something to say about its class; at Filter
// those that filter, at Score those with a weight.
func TestEvaluationsCountPodsByPlugin(t *testing.T) {
	s := named("n0")
	local := framework.Rules{Local: &localScript{reads: framework.ReadsObject}}
	group := framework.Rules{Group: &groupScript{state: s, key: "zone"}}
	e := testkit.Must(engine.New(s, &framework.Profile{Plugins: []framework.Weighted{
		weighted(1, &filtering{scripted{name: "FiltersAndScores", rules: local}}),
		weighted(0, &filtering{scripted{name: "Filters", rules: group}}),
		weighted(5, &scripted{name: "Scores", rules: group}),
		weighted(1, &filtering{scripted{name: "SaysNothing"}}),
		weighted(0, &filtering{scripted{name: "Rejects", why: &framework.Reason{}}}),
	}}, engine.Options{}))
	if got := e.Evaluations(); len(got) != 0 {
		t.Errorf("before any pod the counts are %v, want none", got)
	}
	c := e.Class(parsed(s, testkit.Pod("p")))
	for range 3 {
		e.CountFiltered(c)
	}
	e.CountScored(c)
	want := []engine.Evaluations{
		{Plugin: "FiltersAndScores", Point: "Filter", Pods: 3}, {Plugin: "FiltersAndScores", Point: "Score", Pods: 1},
		{Plugin: "Filters", Point: "Filter", Pods: 3}, {Plugin: "Scores", Point: "Score", Pods: 1}, {Plugin: "Rejects", Point: "Filter", Pods: 3},
	}
	if got := e.Evaluations(); !slices.Equal(got, want) {
		t.Errorf("the counts are %v, want %v", got, want)
	}
}
