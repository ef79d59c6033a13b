package engine_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/internal/testkit"
)

// TestPropertyManyNodesAtOnce changes up to some 200 nodes between two questions, more than are
// evaluated together: in their pods, in their objects, by coming and by going. Kept columns answer
// as those that are made anew for each question, and so do the groups' counts.
func TestPropertyManyNodesAtOnce(t *testing.T) {
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
		subjects := []*testkit.PodBuilder{
			testkit.Pod("plain").Req("cpu", "1"), testkit.Pod("spread").Label("app", "a").Req("cpu", "500m").SpreadHard(v1.LabelTopologyZone, 3, "app", "a"),
			testkit.Pod("apart").Label("app", "b").Req("cpu", "500m").Apart(v1.LabelHostname, "app", "b"),
		}
		for range 4 {
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
			for _, p := range subjects {
				c, d := kept.Class(parsed(s, p)), anew.Class(parsed(s, p))
				a, ok := kept.Best(c)
				b, ok2 := anew.Best(d)
				if fmt.Sprint(a, ok, kept.Answers(c)) != fmt.Sprint(b, ok2, anew.Answers(d)) {
					t.Fatalf("%s: %v %t by a column that is kept, %v %t by one that is made anew", p.Name, a, ok, b, ok2)
				}
			}
		}
	})
}
