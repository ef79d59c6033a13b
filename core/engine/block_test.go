package engine_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyManyNodesAtOnce changes up to some 200 nodes between two questions, more than are
// evaluated together: in their pods, in their objects, by coming and by going. Columns that are
// kept, as long as their classes are, answer as those that are made anew for each question, and so
// do those that take their scores from another one.
func TestPropertyManyNodesAtOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		_, _, profile := setUp(1)
		s := cluster.New(cluster.NewSchema())
		serial := 0
		put := func(i int) {
			serial++
			n := testkit.Node(fmt.Sprint("n", i)).Alloc("cpu", fmt.Sprint(2+testkit.Uniform(t, 3, "cpus")), "memory", "8Gi", "pods", "20").Zone(fmt.Sprint("z", testkit.Uniform(t, 3, "zone")))
			if testkit.Uniform(t, 10, "cordoned") == 0 {
				n.Cordon()
			}
			s.SetNode(s.Schema.ParseNode(n.Obj(), ""))
		}
		nodes := rapid.IntRange(1, 200).Draw(t, "nodes")
		for i := range nodes {
			put(i)
		}
		kept := testkit.Must(engine.New(s, profile, engine.Options{Seed: 5}))
		anew := testkit.Must(engine.New(s, profile, engine.Options{Seed: 5, Rebuilt: true}))
		few := testkit.Must(engine.New(s, profile, engine.Options{Seed: 5, Columns: 2}))
		subjects := []*testkit.PodBuilder{
			testkit.Pod("plain").Req("cpu", "1"), testkit.Pod("spread").Label("app", "a").Req("cpu", "500m").SpreadHard(v1.LabelTopologyZone, 3, "app", "a"),
			testkit.Pod("hosts").Label("app", "b").Req("cpu", "500m").SpreadHard(v1.LabelHostname, 3, "app", "b"),
			testkit.Pod("apart").Label("app", "b").Req("cpu", "500m").Apart(v1.LabelHostname, "app", "b"),
		}
		change := func() {
			for range rapid.SampledFrom([]int{0, 1, 10, 63, 64, 65, 130, 200}).Draw(t, "touched") {
				i := testkit.Uniform(t, nodes, "node")
				switch testkit.Uniform(t, 8, "change") {
				case 0:
					put(i)
				case 1:
					s.RemoveNode(fmt.Sprint("n", i))
				default:
					serial++
					p := testkit.Pod(fmt.Sprint("p", serial)).Label("app", []string{"a", "b", "c"}[testkit.Uniform(t, 3, "app")]).Req("cpu", "500m")
					s.Place(s.Schema.ParsePod(p.Obj()), fmt.Sprint("n", i))
				}
			}
		}
		for range 5 {
			if rapid.Bool().Draw(t, "what if") {
				m := s.Mark()
				change()
				for _, p := range subjects {
					if rapid.Bool().Draw(t, "asked") {
						kept.Best(kept.Class(parsed(s, p)))
						few.Best(few.Class(parsed(s, p)))
					}
				}
				s.Rollback(m)
			}
			change()
			kept.Sweep(func(*engine.Class) bool { return testkit.Uniform(t, 2, "kept") == 0 })
			for _, p := range subjects {
				if !rapid.Bool().Draw(t, "asked") {
					continue
				}
				c, d := kept.Class(parsed(s, p)), anew.Class(parsed(s, p))
				a, ok := kept.Best(c)
				b, ok2 := anew.Best(d)
				if fmt.Sprint(a, ok, kept.Answers(c)) != fmt.Sprint(b, ok2, anew.Answers(d)) {
					t.Fatalf("%s: %v %t by a column that is kept, %v %t by one that is made anew", p.Name, a, ok, b, ok2)
				}
				f := few.Class(parsed(s, p))
				a, ok = few.Best(f)
				if fmt.Sprint(a, ok, few.Answers(f)) != fmt.Sprint(b, ok2, anew.Answers(d)) {
					t.Fatalf("%s: %v %t where two columns are filled at a time, %v %t by one that is made anew", p.Name, a, ok, b, ok2)
				}
				if n := few.Size().Columns; n > 2 {
					t.Fatalf("%d columns are filled, want 2 at most", n)
				}
			}
		}
	})
}

// TestAColumnOutlivesTheClassThatItWasMadeFor as long as another column takes scores from it: what is
// taken back of a what-if is taken back there, too.
func TestAColumnOutlivesTheClassThatItWasMadeFor(t *testing.T) {
	s := nodes(testkit.Node("a").Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Zone("z"), testkit.Node("b").Alloc("cpu", "2", "memory", "8Gi", "pods", "10").Zone("z"))
	_, _, profile := setUp(1)
	e := testkit.Must(engine.New(s, profile, engine.Options{}))
	spread := testkit.Pod("spread").Label("app", "a").Req("cpu", "2").SpreadHard(v1.LabelTopologyZone, 5, "app", "a")
	apart := testkit.Pod("apart").Label("app", "a").Req("cpu", "2").Apart(v1.LabelHostname, "app", "b")
	e.Best(e.Class(parsed(s, spread)))
	c := e.Class(parsed(s, apart))
	e.Best(c)
	if n := e.Size().Columns; n != 2 {
		t.Fatalf("%d columns, want 2", n)
	}
	e.Sweep(func(x *engine.Class) bool { return x == c })
	if n := e.Size().Columns; n != 2 {
		t.Errorf("%d columns are left of one that takes its scores from another, want both", n)
	}
	m := s.Mark()
	for _, name := range []string{"a", "b"} {
		s.Place(parsed(s, testkit.Pod("on-"+name).Req("cpu", "2")), name)
	}
	e.Best(c)
	s.Rollback(m)
	s.Place(parsed(s, testkit.Pod("more").Req("cpu", "100m")), "b")
	if best, ok := e.Best(c); !ok || best.Node != s.NodeByName("a").Index {
		t.Errorf("the best node is %v (%t), want a: b has no room, and what was on a is taken back", best, ok)
	}
	e.Sweep(func(*engine.Class) bool { return false })
	if size := e.Size(); size != (engine.Size{}) {
		t.Errorf("when no class is left there is %+v", size)
	}
}
