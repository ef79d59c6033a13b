package engine_test

import (
	"math"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/internal/test/testkit"
)

// What weights and bonuses may be, for profiles that no file was read for.

func TestWeightsThatNoKeyCanHoldAreRefused(t *testing.T) {
	plugin := func(name string, weight int64) framework.Weighted { return weighted(weight, &scripted{name: name}) }
	extender := func(weight int64) framework.Extender {
		return framework.Extender{Prioritizes: true, Weight: weight}
	}
	for _, c := range []struct {
		name      string
		plugins   []framework.Weighted
		extenders []framework.Extender
		want      []string // parts of the error; none when there is no error
	}{
		{"no weights", []framework.Weighted{plugin("A", 0)}, nil, nil},
		{"the limit", []framework.Weighted{plugin("A", engine.MaxWeights-1), plugin("B", 1)}, nil, nil},
		{"a sum beyond it", []framework.Weighted{plugin("A", engine.MaxWeights), plugin("B", 1)}, nil, []string{`"batch"`, "83887", "83886", "lower them"}},
		{"one beyond it", []framework.Weighted{plugin("A", engine.MaxWeights+1)}, nil, []string{`"batch"`, "plugin A", "83887", "83886", "lower them"}},
		{"a sum that overflows", []framework.Weighted{plugin("A", math.MaxInt64), plugin("B", math.MaxInt64)}, nil, []string{`"batch"`, "plugin A", "83886"}},
		{"a negative weight", []framework.Weighted{plugin("A", 5), plugin("B", -1)}, nil, []string{`"batch"`, "plugin B", "-1"}},
		{"extenders at their limit", nil, []framework.Extender{extender(engine.MaxExtenderWeights - 1), extender(1)}, nil},
		{"extenders beyond it", nil, []framework.Extender{extender(engine.MaxExtenderWeights), extender(1)}, []string{`"batch"`, "extender 2", "46116860184273879"}},
		{"an extender's negative weight", nil, []framework.Extender{extender(-1)}, []string{`"batch"`, "extender 1", "-1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := engine.New(nodes(), &framework.Profile{SchedulerName: "batch", Plugins: c.plugins, Extenders: c.extenders}, engine.Options{})
			if (e == nil) != (c.want != nil) || (err != nil) != (c.want != nil) {
				t.Fatalf("engine %v, error %v; want an error: %v", e, err, c.want != nil)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error %q doesn't say %q", err, part)
				}
			}
		})
	}
}

// At the limit of weights the best possible node scores 2·MaxScore·MaxWeights.
// If that didn't fit into a key, its upper bits would be lost and the worse node
// chosen.
func TestTheHighestScoreIsChosenAtTheLimitOfWeights(t *testing.T) {
	s := nodes(testkit.Node("best").Zone("a"), testkit.Node("worse").Zone("b"))
	rules := framework.Rules{
		Local: &localScript{reads: framework.ReadsObject, scores: map[string]int64{"best": 100, "worse": 99}},
		Group: &groupScript{state: s, key: v1.LabelTopologyZone, scores: map[string]int64{"a": 100, "b": 100}},
	}
	profile := &framework.Profile{Plugins: []framework.Weighted{weighted(engine.MaxWeights, &scripted{name: "A", rules: rules})}}
	e := testkit.Must(engine.New(s, profile, engine.Options{}))
	best, a, ok := e.BestWithBreakdown(e.Class(s.Schema.ParsePod(testkit.Pod("p").Obj())))
	if want := int64(200 * engine.MaxWeights); !ok || s.Node(best.Node).Name != "best" || best.Score != want {
		t.Errorf("best is %+v, %v; want node best with score %d", best, ok, want)
	}
	if want := int64(199 * engine.MaxWeights); s.Node(a.RunnerUp).Name != "worse" || a.RunnerUpScore != want {
		t.Errorf("the runner-up is %+v; want node worse with score %d", a, want)
	}
}

// A bonus comes from an extender, or from a recording of what one said.
func TestBonusesBeyondTheirLimitsCountAsTheLimit(t *testing.T) {
	for _, c := range []struct {
		name  string
		bonus map[string]int64
		want  string
		score int64
	}{
		{"within", map[string]int64{"low": 41, "high": 0}, "low", 51},
		{"negative is 0", map[string]int64{"low": 0, "high": math.MinInt64}, "high", 50},
		{"beyond MaxBonus is MaxBonus", map[string]int64{"low": math.MaxInt64, "high": 7}, "low", engine.MaxBonus + 10},
		{"scores tell apart what is beyond", map[string]int64{"low": math.MaxInt64, "high": engine.MaxBonus}, "high", engine.MaxBonus + 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := nodes(testkit.Node("low"), testkit.Node("high"))
			rules := framework.Rules{Local: &localScript{reads: framework.ReadsObject, scores: map[string]int64{"low": 10, "high": 50}}}
			profile := &framework.Profile{Plugins: []framework.Weighted{weighted(1, &scripted{name: "A", rules: rules})}}
			e := testkit.Must(engine.New(s, profile, engine.Options{}))
			p := s.Schema.ParsePod(testkit.Pod("p").Obj())
			best, _, ok := e.PlaceAmong(e.Class(p), p, func(n *cluster.Node) (int64, bool) { return c.bonus[n.Name], true })
			if !ok || s.Node(best.Node).Name != c.want || best.Score != c.score {
				t.Errorf("placed on %+v, %v; want %s with score %d", best, ok, c.want, c.score)
			}
		})
	}
}
