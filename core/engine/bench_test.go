package engine_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
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

// BenchmarkClasses measures what equivalence classes are worth: 1,000 pods that no rule distinguishes
// are each given a class and placed on 1,000 nodes, with classes, which all of them share, and
// without, where each has its own. The reported "classes" prove it.
func BenchmarkClasses(b *testing.B) {
	const nodes, pods = 1000, 1000
	for _, c := range testkit.PlacementCases()[:4] {
		for _, unclassed := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/unclassed=%t", c.Name, unclassed), func(b *testing.B) {
				classes := map[*engine.Class]bool{}
				for b.Loop() {
					b.StopTimer()
					state := c.State(nodes)
					e := testkit.Must(engine.New(state, plugins.Default(state.Schema, plugins.Options{}), engine.Options{Seed: 1, Unclassed: unclassed}))
					list := make([]*cluster.Pod, pods)
					for i := range list {
						obj := c.CasePod(0).Obj()
						obj.UID, obj.Name = types.UID(fmt.Sprint("u", i)), fmt.Sprint("p", i)
						list[i] = state.Schema.ParsePod(obj)
					}
					b.StartTimer()
					for i, p := range list {
						class := e.Class(p)
						if _, ok := e.Place(class, p); !ok {
							b.Fatalf("pod %d found no node", i)
						}
						classes[class] = true
					}
				}
				b.ReportMetric(float64(len(classes))/float64(b.N), "classes")
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/pods, "µs/pod")
			})
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

// BenchmarkSign parses a pod and finds its class, which is known: what each pod costs before it
// is placed.
func BenchmarkSign(b *testing.B) {
	for _, c := range testkit.PlacementCases() {
		b.Run(c.Name, func(b *testing.B) {
			state, e := caseWorld(100, &c)
			p := c.CasePod(0).Obj()
			e.Class(state.Schema.ParsePod(p))
			b.ReportAllocs()
			for b.Loop() {
				e.Class(state.Schema.ParsePod(p))
			}
		})
	}
}

func caseWorld(nodes int, c *testkit.PlacementCase) (*cluster.State, *engine.Engine) {
	state := c.State(nodes)
	return state, testkit.Must(engine.New(state, plugins.Default(state.Schema, plugins.Options{}), engine.Options{Seed: 1}))
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

// BenchmarkRefusal has a class refused again after one node was touched: on none of 5,000 nodes
// there is enough CPU. Nobody has a lower priority; or each node has such a pod, which would
// leave too little.
func BenchmarkRefusal(b *testing.B) {
	for _, c := range []struct {
		name string
		pod  *testkit.PodBuilder
	}{
		{"lowerpods", testkit.Pod("p").Label("app", "web").Req("cpu", "2").Priority(10)},
		{"plain", testkit.Pod("p").Label("app", "web").Req("cpu", "2")},
		{"hardspread", testkit.Pod("p").Label("app", "web").Req("cpu", "2").SpreadHard("topology.kubernetes.io/zone", 1, "app", "web")},
	} {
		b.Run(c.name, func(b *testing.B) {
			schema := cluster.NewSchema()
			s := cluster.New(schema)
			e := testkit.Must(engine.New(s, plugins.Default(schema, plugins.Options{}), engine.Options{}))
			const nodes = 5000
			for i := range nodes {
				name := fmt.Sprint("n", i)
				s.SetNode(schema.ParseNode(testkit.Node(name).Zone(string(rune('a'+i%3))).Alloc("cpu", "4", "memory", "32Gi", "pods", "110").Obj(), ""))
				s.Place(schema.ParsePod(testkit.Pod("on-"+name).Req("cpu", "2500m").Priority(10).Obj()), name)
				s.Place(schema.ParsePod(testkit.Pod("small-"+name).Req("cpu", "100m").Obj()), name)
			}
			class := e.Class(schema.ParsePod(c.pod.Obj()))
			extra := schema.ParsePod(testkit.Pod("extra").Req("cpu", "100m").Obj())
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.PlaceAt(extra, cluster.NodeIndex(i%nodes))
				if _, ok := e.Best(class); ok {
					b.Fatal("it fits")
				}
				if _, ok := e.Preempt(class); ok {
					b.Fatal("it may preempt")
				}
				if d := e.Diagnose(class); d.Nodes() != nodes || e.PreemptionMessage(class) == "" {
					b.Fatal("no diagnosis")
				}
				s.Remove(extra.UID)
				if i%1000 == 0 {
					s.Trim(s.Head() - 10)
				}
			}
		})
	}
}

// BenchmarkDaemonSetRollout places a DaemonSet's pods, one on each of the nodes, each bound to
// its node by name. An operation is one pod: parsed, classified and placed.
func BenchmarkDaemonSetRollout(b *testing.B) {
	for _, nodes := range []int{5000, 50000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			schema := cluster.NewSchema()
			s := cluster.New(schema)
			e := testkit.Must(engine.New(s, plugins.Default(schema, plugins.Options{}), engine.Options{Seed: 1}))
			objects := make([]*v1.Pod, nodes)
			for i := range nodes {
				name := fmt.Sprint("n", i)
				s.SetNode(schema.ParseNode(testkit.Node(name).Zone(string(rune('a'+i%3))).Alloc("cpu", "4", "memory", "32Gi", "pods", "110").Obj(), ""))
				objects[i] = testkit.DaemonPod("agent", name).Req("cpu", "100m", "memory", "200Mi").Obj()
			}
			var placed []types.UID
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				p := schema.ParsePod(objects[i%nodes])
				choice, ok := e.Place(e.Class(p), p)
				if !ok || s.Node(choice.Node).Name != fmt.Sprint("n", i%nodes) {
					b.Fatalf("pod %d was placed on %d (%v)", i, choice.Node, ok)
				}
				if placed = append(placed, p.UID); len(placed)%64 == 0 {
					e.Sweep(func(*engine.Class) bool { return false })
					s.Trim(s.Head())
				}
				if len(placed) == nodes {
					b.StopTimer()
					for _, uid := range placed {
						s.Remove(uid)
					}
					placed = placed[:0]
					b.StartTimer()
				}
			}
		})
	}
}
