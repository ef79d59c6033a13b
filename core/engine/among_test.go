package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/internal/test/testkit"
)

// What extenders allow and add decides among the nodes that the rules take: n0 to n3 with
// scores 10 to 40, and a node that the rules reject.
func TestPlaceAmongTakesTheBestAllowedNode(t *testing.T) {
	scores := map[string]int64{"n0": 10, "n1": 20, "n2": 30, "n3": 40}
	for _, c := range []struct {
		name          string
		allowed       map[string]int64 // bonus by node
		want          string
		score         int64
		runnerUp      string
		runnerUpScore int64
	}{
		{"all, without a bonus", map[string]int64{"n0": 0, "n1": 0, "n2": 0, "n3": 0}, "n3", 40, "n2", 30},
		{"the bonus decides", map[string]int64{"n0": 35, "n1": 0, "n3": 0}, "n0", 45, "n3", 40},
		{"the best comes first", map[string]int64{"n0": 100, "n1": 0, "n2": 0}, "n0", 110, "n2", 30},
		{"the second comes after a worse one", map[string]int64{"n0": 100, "n1": 5, "n2": 0}, "n0", 110, "n2", 30},
		{"one", map[string]int64{"n1": 5}, "n1", 25, "none", 0},
		{"all but the first", map[string]int64{"n1": 5, "n2": 0, "n3": 0}, "n3", 40, "n2", 30},
		{"one that the rules reject", map[string]int64{"n4": 500}, "none", 0, "none", 0},
		{"none", nil, "none", 0, "none", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := named("n4", "n0", "n1", "n2", "n3") // the one that the rules reject comes first
			e := over(s, &scripted{name: "A", rules: framework.Rules{Local: &localScript{reads: framework.ReadsObject, scores: scores}}})
			p := parsed(s, testkit.Pod("p"))
			best, a, ok := e.PlaceAmong(e.Class(p), p, func(n *cluster.Node) (int64, bool) {
				bonus, ok := c.allowed[n.Name]
				return bonus, ok
			})
			if got := nodeName(s, best.Node); got != c.want || best.Score != c.score || ok != (c.want != "none") {
				t.Errorf("placed on %s with %d, %v; want %s with %d", got, best.Score, ok, c.want, c.score)
			}
			if on := s.NodeOf(p.UID); (on != nil) != ok || ok && on.Index != best.Node {
				t.Errorf("the pod is on %v", on)
			}
			if !ok {
				return
			}
			if got := nodeName(s, a.RunnerUp); got != c.runnerUp || a.RunnerUpScore != c.runnerUpScore {
				t.Errorf("the runner-up is %s with %d, want %s with %d", got, a.RunnerUpScore, c.runnerUp, c.runnerUpScore)
			}
			if want := []engine.PluginScore{{Plugin: "A", Raw: scores[c.want], Score: scores[c.want]}}; !slices.Equal(a.Scores, want) {
				t.Errorf("scores are %v, want %v: the rules' own", a.Scores, want)
			}
		})
	}
}

// Whether extenders are asked mustn't change which of equally good nodes is chosen.
func TestPlaceAmongBreaksTiesAsBestDoes(t *testing.T) {
	for seed := range uint64(20) {
		s, e := tied(seed, testkit.Names("n", 5)...)
		p := parsed(s, testkit.Pod("p"))
		best, a, _ := e.BestWithBreakdown(e.Class(p))
		mark := s.Mark()
		among, b, _ := e.PlaceAmong(e.Class(p), p, func(*cluster.Node) (int64, bool) { return 3, true })
		s.Rollback(mark)
		if among.Node != best.Node || b.RunnerUp != a.RunnerUp {
			t.Errorf("seed %d: best is %d before %d, among all it is %d before %d", seed, best.Node, a.RunnerUp, among.Node, b.RunnerUp)
		}
	}
}

func TestFeasibleNamesTheNodesThatTakeTheClass(t *testing.T) {
	s := named("n2", "n0", "n1")
	e := over(s, &scripted{rules: framework.Rules{Local: &localScript{reads: framework.ReadsObject, scores: map[string]int64{"n2": 0, "n1": 5}}}})
	if got := e.Feasible(e.Class(parsed(s, testkit.Pod("p")))); fmt.Sprint(got) != "[n2 n1]" {
		t.Errorf("feasible are %v, want n2 and n1, in the order of the nodes", got)
	}
}

// TestAnswersForSomeNodesAreThoseOfAll asks about nodes in an order of their own, one twice.
func TestAnswersForSomeNodesAreThoseOfAll(t *testing.T) {
	s := named("n4", "n0", "n1", "n2") // the rules reject n4
	e := over(s, &scripted{name: "A", rules: framework.Rules{Local: &localScript{reads: framework.ReadsObject, scores: map[string]int64{"n0": 10, "n1": 20, "n2": 30}}}})
	c := e.Class(parsed(s, testkit.Pod("p")))
	all := e.Answers(c)
	var nodes []cluster.NodeIndex
	var want []engine.NodeAnswer
	for _, i := range []int{3, 0, 1, 3} {
		nodes, want = append(nodes, all[i].Node), append(want, all[i])
	}
	if got := e.AnswersFor(c, nodes); !slices.Equal(got, want) {
		t.Errorf("the answers for %v are %v, want %v", nodes, got, want)
	}
	if want[0].Score != 30 || want[1].OK || want[2].Score != 10 {
		t.Errorf("the answers are %v, want 30 for n2, none for n4 and 10 for n0", want)
	}
}
