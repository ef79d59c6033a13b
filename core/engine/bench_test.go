package engine_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/testkit"
)

// BenchmarkPlace measures one placement including booking the pod, all plugins
// on. When the cluster fills up it is emptied outside the timer. The reported
// "nodes" are distinct nodes in use at the end: proof that pods did spread.
func BenchmarkPlace(b *testing.B) {
	for _, nodes := range []int{5000, 50000} {
		for _, c := range testkit.PlacementCases() {
			b.Run(fmt.Sprintf("nodes=%d/%s", nodes, c.Name), func(b *testing.B) { benchmarkPlace(b, nodes, &c) })
		}
	}
}

// BenchmarkFirst measures the first placement of a class of a new shape.
func BenchmarkFirst(b *testing.B) {
	for _, nodes := range []int{5000, 50000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			c := testkit.PlacementCases()[1]
			state, e := caseWorld(nodes, &c)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				p := state.Schema.ParsePod(c.CasePod(0).Req("memory", fmt.Sprint(100+i, "Mi")).Obj())
				if _, ok := e.Best(e.Class(p)); !ok {
					b.Fatal("no node")
				}
				if i%64 == 0 {
					e.Sweep(func(*engine.Class) bool { return false })
				}
			}
		})
	}
}

func caseWorld(nodes int, c *testkit.PlacementCase) (*cluster.State, *engine.Engine) {
	schema := cluster.NewSchema()
	state := cluster.New(schema)
	for i := range nodes {
		state.SetNode(schema.ParseNode(c.CaseNode(i).Obj(), ""))
	}
	for _, p := range c.Neighbours() {
		state.Place(schema.ParsePod(p.Obj()), p.Spec.NodeName)
	}
	for k := range c.Classes {
		if c.Service {
			state.SetWorkload(&cluster.Workload{Kind: cluster.Service, Namespace: "default", Name: fmt.Sprint("s", k), Set: testkit.CaseSelector(k)})
		}
	}
	return state, testkit.Must(engine.New(state, plugins.Default(schema, plugins.Options{}), engine.Options{Seed: 1}))
}

func benchmarkPlace(b *testing.B, nodes int, c *testkit.PlacementCase) {
	state, e := caseWorld(nodes, c)
	pods := make([]*cluster.Pod, c.Classes)
	cs := make([]*engine.Class, c.Classes)
	for k := range cs {
		pods[k] = state.Schema.ParsePod(c.CasePod(k).Obj())
		cs[k] = e.Class(pods[k])
		e.Best(cs[k])
	}
	var placed []types.UID
	fresh := make([]cluster.Pod, b.N)
	for i := range fresh {
		fresh[i] = *pods[i%c.Classes]
		fresh[i].UID = types.UID(fmt.Sprint("u", i))
	}
	limit := min(20000, 4*nodes) // pods before the cluster is emptied
	if c.Classes == 1 && c.Name == "hostname anti-affinity" {
		limit = nodes * 9 / 10
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		k := i % c.Classes
		if _, ok := e.Place(cs[k], &fresh[i]); !ok {
			b.Fatalf("placement %d found no node: %s", i, e.Diagnose(cs[k]).Message())
		}
		placed = append(placed, fresh[i].UID)
		if len(placed) >= limit {
			b.StopTimer()
			for _, uid := range placed {
				state.Remove(uid)
			}
			placed = placed[:0]
			state.Trim(state.Head())
			for _, c := range cs {
				e.Best(c)
			}
			b.StartTimer()
		}
		if i%4096 == 4095 {
			state.Trim(state.Head() - 4096)
		}
	}
	b.StopTimer()
	used := 0
	state.Nodes(func(n *cluster.Node) {
		if len(n.Pods) > 0 {
			used++
		}
	})
	b.ReportMetric(float64(used), "nodes")
}
