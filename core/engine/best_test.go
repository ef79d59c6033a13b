package engine_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// The best node has the highest sum of local scores and what group rules add to its
// domain, among the nodes that no rule rejects. Nodes a0 and a1 are in zone a, b0 in b.
func TestBestIsTheHighestSumOfLocalAndGroupScores(t *testing.T) {
	for _, c := range []struct {
		name          string
		local         map[string]int64
		zones         map[string]int64
		rejects       map[string]bool
		weight        int64 // of the group rule; that of the local rule is 1
		want          string
		score         int64
		runnerUp      string
		runnerUpScore int64
	}{
		{"the group decides", map[string]int64{"a0": 50, "a1": 40, "b0": 45}, map[string]int64{"b": 10}, nil, 1, "b0", 55, "a0", 50},
		{"the local score decides", map[string]int64{"a0": 50, "a1": 40, "b0": 30}, map[string]int64{"b": 10}, nil, 1, "a0", 50, "a1", 40},
		{"the group's weight decides", map[string]int64{"a0": 50, "a1": 40, "b0": 30}, map[string]int64{"b": 10}, nil, 3, "b0", 60, "a0", 50},
		{"without weight the group has no say", map[string]int64{"a0": 50, "a1": 40, "b0": 45}, map[string]int64{"b": 10}, nil, 0, "a0", 50, "b0", 45},
		{"both of the best are in one group", map[string]int64{"a0": 50, "a1": 49, "b0": 10}, map[string]int64{"a": 1}, nil, 1, "a0", 51, "a1", 50},
		{"the group rule rejects the best", map[string]int64{"a0": 50, "a1": 40, "b0": 30}, nil, map[string]bool{"a": true}, 1, "b0", 30, "none", 0},
		{"the local rule rejects the best zone", map[string]int64{"a0": 50, "a1": 40}, map[string]int64{"b": 90}, nil, 1, "a0", 50, "a1", 40},
		{"a score of 0 is a score", map[string]int64{"b0": 0}, nil, nil, 1, "b0", 0, "none", 0},
		{"every node is rejected by one rule or the other", map[string]int64{"a0": 50}, nil, map[string]bool{"a": true}, 1, "none", 0, "none", 0},
		{"the local rule rejects all", map[string]int64{}, nil, nil, 1, "none", 0, "none", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := nodes(testkit.Node("a0").Zone("a"), testkit.Node("a1").Zone("a"), testkit.Node("b0").Zone("b"))
			group := &groupScript{state: s, key: v1.LabelTopologyZone, scores: c.zones, rejects: c.rejects}
			e := testkit.Must(engine.New(s, &framework.Profile{Plugins: []framework.Weighted{
				weighted(1, &scripted{name: "Local", rules: framework.Rules{Local: &localScript{reads: framework.ReadsObject, scores: c.local}}}),
				weighted(c.weight, &scripted{name: "Group", rules: framework.Rules{Group: group}}),
			}}, engine.Options{}))
			best, a, ok := e.BestWithBreakdown(e.Class(parsed(s, testkit.Pod("p"))))
			if got := nodeName(s, best.Node); got != c.want || ok != (c.want != "none") || best.Score != c.score {
				t.Errorf("best is %s with %d, want %s with %d", got, best.Score, c.want, c.score)
			}
			if !ok {
				return
			}
			if got := nodeName(s, a.RunnerUp); got != c.runnerUp || a.RunnerUpScore != c.runnerUpScore {
				t.Errorf("the runner-up is %s with %d, want %s with %d", got, a.RunnerUpScore, c.runnerUp, c.runnerUpScore)
			}
		})
	}
}

func TestARejectedClassFitsNowhere(t *testing.T) {
	s := named("n0")
	why := &framework.Reason{Plugin: "A", Messages: []string{"no"}}
	later := &framework.Reason{Plugin: "B", Messages: []string{"neither"}}
	e := over(s, &scripted{name: "A", why: why}, &scripted{name: "B", why: later})
	c := e.Class(parsed(s, testkit.Pod("p")))
	if c.Rejected != why {
		t.Errorf("rejected for %v, want the reason of the first plugin", c.Rejected)
	}
	if best, ok := e.Best(c); ok || best.Node != cluster.NoNode {
		t.Errorf("best is %+v, %v; want none", best, ok)
	}
	for _, a := range e.Answers(c) {
		if a.OK {
			t.Errorf("node %d takes a class that is rejected everywhere", a.Node)
		}
	}
	if e.LocallyFits(c, 0) {
		t.Error("it may fit on the node by the rules that look at the node alone")
	}
	if e.CodeOn(c, s.Node(0)) != framework.Final || e.FitsOn(c, s.Node(0)) || e.Explain(c, 0) != why {
		t.Errorf("on the node: code %d, fits %v, reason %v; want Final, false and the reason", e.CodeOn(c, s.Node(0)), e.FitsOn(c, s.Node(0)), e.Explain(c, 0))
	}
}

// tied returns an engine over equally good nodes; classes are told apart by the label app.
func tied(seed uint64, names ...string) (*cluster.State, *engine.Engine) {
	s := named(names...)
	profile := &framework.Profile{Plugins: []framework.Weighted{weighted(1, &scripted{
		rules: framework.Rules{Local: &localScript{reads: framework.ReadsObject}}, sign: signsLabel("app", true)})}}
	return s, testkit.Must(engine.New(s, profile, engine.Options{Seed: seed}))
}

func TestPropertyTiesDontDependOnTheOrderOfNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := testkit.Names("n", rapid.IntRange(2, 40).Draw(t, "nodes"))
		seed := rapid.Uint64().Draw(t, "seed")
		winner := func(names []string) string {
			s, e := tied(seed, names...)
			best, a, _ := e.BestWithBreakdown(e.Class(parsed(s, testkit.Pod("p"))))
			return nodeName(s, best.Node) + " before " + nodeName(s, a.RunnerUp)
		}
		if got, want := winner(rapid.Permutation(names).Draw(t, "order")), winner(names); got != want {
			t.Fatalf("%s in one order, %s in another", got, want)
		}
	})
}

// Without a favourite node: seeds and local signatures spread equally good choices. Of 40
// draws over 10 nodes, fewer than 7 different ones would be a chance of 3 in ten million.
func TestTiesHaveNoFavouriteNode(t *testing.T) {
	names := testkit.Names("n", 10)
	bySeed, byClass := map[string]bool{}, map[string]bool{}
	for i := range 40 {
		s, e := tied(uint64(i), names...)
		best, _ := e.Best(e.Class(parsed(s, testkit.Pod("p"))))
		bySeed[nodeName(s, best.Node)] = true
		s, e = tied(1, names...)
		best, _ = e.Best(e.Class(parsed(s, testkit.Pod("p").Label("app", fmt.Sprint(i)))))
		byClass[nodeName(s, best.Node)] = true
	}
	if len(bySeed) < 7 || len(byClass) < 7 {
		t.Errorf("40 seeds chose %d different nodes of 10, 40 classes %d", len(bySeed), len(byClass))
	}
}

// placements places pods of one class by f inside a what-if, and returns where.
func placements(s *cluster.State, f func(placed func(*cluster.Pod, engine.Choice)) int) (out []string) {
	mark := s.Mark()
	defer s.Rollback(mark)
	n := f(func(p *cluster.Pod, c engine.Choice) {
		if on := s.NodeOf(p.UID); on == nil || on.Index != c.Node {
			out = append(out, "not there")
		}
		out = append(out, fmt.Sprintf("%s on %s with %d", p.Name(), nodeName(s, c.Node), c.Score))
	})
	if n != len(out) {
		out = append(out, fmt.Sprintf("%d placed, it says", n))
	}
	return out
}

func TestPropertyPlaceManyEqualsPlacingOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, e, _ := setUp(rapid.IntRange(1, 12).Draw(t, "nodes"))
		w.Furnish(t)
		for range 15 {
			w.Change(t)
		}
		pod := w.Pod(t, "subject")
		pod.Spec.SchedulingGroup = nil // where the first member is, the others have to be
		var pods []*cluster.Pod
		for i := range rapid.IntRange(1, 30).Draw(t, "pods") {
			p := pod.DeepCopy()
			p.Name = fmt.Sprint("subject", i)
			p.UID += types.UID(fmt.Sprint("-", i))
			pods = append(pods, w.State.Schema.ParsePod(p))
		}
		c := e.Class(pods[0])
		many := placements(w.State, func(placed func(*cluster.Pod, engine.Choice)) int { return e.PlaceMany(c, pods, placed) })
		single := placements(w.State, func(placed func(*cluster.Pod, engine.Choice)) int {
			for i, p := range pods {
				choice, ok := e.Place(e.Class(p), p)
				if !ok {
					return i
				}
				placed(p, choice)
			}
			return len(pods)
		})
		if !slices.Equal(many, single) {
			t.Fatalf("placed together %v, one by one %v", many, single)
		}
	})
}

// Two pods use one claim that waits for its first consumer. The first pod takes a volume
// in its zone, so the second has to come there too, where there is no room.
func TestPlaceManyClassifiesPodsWithClaimsAgain(t *testing.T) {
	s := nodes(testkit.Node("n0").Alloc("cpu", "1", "memory", "8Gi").Zone("a"), testkit.Node("n1").Alloc("cpu", "1", "memory", "8Gi").Zone("b"))
	s.SetObject(class("static", "kubernetes.io/no-provisioner"))
	s.SetObject(claim("c", "static", ""))
	s.SetObject(volume("pv-a", "static", "a"))
	s.SetObject(volume("pv-b", "static", "b"))
	e := testkit.Must(engine.New(s, plugins.Default(s.Schema, plugins.Options{}), engine.Options{}))
	pods := []*cluster.Pod{parsed(s, uses("p", "c").Req("cpu", "1")), parsed(s, uses("q", "c").Req("cpu", "1"))}
	var writes []int
	n := e.PlaceMany(e.Class(pods[0]), pods, func(_ *cluster.Pod, c engine.Choice) { writes = append(writes, len(c.Writes)) })
	if n != 1 || len(writes) != 1 || writes[0] == 0 {
		t.Errorf("placed %d pods, with writes %v; want one, with the volume that it takes", n, writes)
	}
}

// How many goroutines evaluate, and whether answers are kept, changes no answer.
func TestPropertyWorkersAndCachesChangeNoAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, _, profile := setUp(rapid.IntRange(1, 20).Draw(t, "nodes"))
		w.Furnish(t)
		options := []engine.Options{{Seed: 3}, {Seed: 3, Workers: 1}, {Seed: 3, Workers: 2}, {Seed: 3, Workers: 8}, {Seed: 3, Workers: 3, Rebuilt: true}, {Seed: 3, Unclassed: true}}
		var engines []*engine.Engine
		for _, o := range options {
			engines = append(engines, testkit.Must(engine.New(w.State, profile, o)))
		}
		for range 5 {
			for range 6 {
				w.Change(t)
			}
			p := w.State.Schema.ParsePod(w.Pod(t, "subject"))
			want := ""
			for i, e := range engines {
				c := e.Class(p)
				best, a, ok := e.BestWithBreakdown(c)
				got := fmt.Sprint(e.Answers(c), best, a, ok, e.Scores(c))
				if i == 0 {
					want = got
				} else if got != want {
					t.Fatalf("with %+v: %s\nwith %+v: %s", options[i], got, options[0], want)
				}
			}
		}
	})
}

func TestUnclassedMakesEveryPodAClass(t *testing.T) {
	s := named("n0")
	profile := &framework.Profile{Plugins: []framework.Weighted{weighted(1, &scripted{name: "A"})}}
	for _, unclassed := range []bool{false, true} {
		e := testkit.Must(engine.New(s, profile, engine.Options{Unclassed: unclassed}))
		p, q := e.Class(parsed(s, testkit.Pod("p"))), e.Class(parsed(s, testkit.Pod("q")))
		if (p != q) != unclassed || e.Class(parsed(s, testkit.Pod("p"))) != p {
			t.Errorf("unclassed %v: two pods alike have classes %d and %d, the first again %d", unclassed, p.ID, q.ID, e.Class(parsed(s, testkit.Pod("p"))).ID)
		}
	}
}
