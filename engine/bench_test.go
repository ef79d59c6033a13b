package engine_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/cluster"
	"github.com/berthproject/berth/engine"
	"github.com/berthproject/berth/internal/testkit"
	"github.com/berthproject/berth/plugins"
)

// shapes are eight requests that differ in size and in balance.
var shapes = [8][2]string{
	{"100m", "128Mi"}, {"100m", "500Mi"}, {"250m", "256Mi"}, {"200m", "1Gi"},
	{"500m", "512Mi"}, {"150m", "2Gi"}, {"1", "1Gi"}, {"300m", "768Mi"},
}

// BenchmarkPlace measures one placement including booking the pod, all plugins
// on. When the cluster fills up it is emptied outside the timer. The reported
// "nodes" are distinct nodes in use at the end: proof that pods did spread.
func BenchmarkPlace(b *testing.B) {
	type rule struct {
		name    string
		pod     func(p *testkit.PodBuilder, class int)
		service bool
	}
	plain := rule{name: "plain", pod: func(*testkit.PodBuilder, int) {}}
	rules := []rule{
		{name: "preferred-node-affinity", pod: func(p *testkit.PodBuilder, _ int) { p.PreferIn(5, "disk", "ssd") }},
		{name: "system-default-spread", service: true, pod: func(p *testkit.PodBuilder, _ int) {}},
		{name: "soft-zone-spread", pod: func(p *testkit.PodBuilder, class int) {
			p.SpreadSoft(v1.LabelTopologyZone, 1, "app", fmt.Sprint("app", class))
		}},
		{name: "hostname-anti-affinity", pod: func(p *testkit.PodBuilder, class int) {
			p.Apart(v1.LabelHostname, "app", fmt.Sprint("app", class))
		}},
		{name: "zone-anti-affinity-of-others", pod: func(p *testkit.PodBuilder, _ int) { p.Apart(v1.LabelTopologyZone, "app", "none") }},
	}
	run := func(nodes, classes int, r rule) {
		b.Run(fmt.Sprintf("nodes=%d/classes=%d/%s", nodes, classes, r.name), func(b *testing.B) {
			benchmarkPlace(b, nodes, classes, r.service, r.pod)
		})
	}
	for _, nodes := range []int{5000, 50000} {
		run(nodes, 1, plain)
		for _, r := range rules {
			run(nodes, 1, r)
		}
		run(nodes, 200, rules[1])
		run(nodes, 200, rules[3])
	}
}

func benchmarkPlace(b *testing.B, nodes, classes int, service bool, shape func(*testkit.PodBuilder, int)) {
	schema := cluster.NewSchema()
	state := cluster.New(schema)
	for i := range nodes {
		n := testkit.Node(fmt.Sprint("node-", i)).Alloc("cpu", "4", "memory", "32Gi").Zone(fmt.Sprint("z", i%3))
		if i%4 == 0 {
			n.Label("disk", "ssd")
		}
		state.SetNode(schema.ParseNode(n.Obj(), ""))
	}
	e := engine.New(state, plugins.Default(schema, plugins.Options{}), engine.Options{Seed: 1})
	pods := make([]*cluster.Pod, classes)
	for k := range classes {
		s := shapes[k%len(shapes)]
		app := fmt.Sprint("app", k)
		p := testkit.Pod(app).Req("cpu", s[0], "memory", s[1]).Label("app", app)
		shape(p, k)
		pods[k] = schema.ParsePod(p.Obj())
		if service {
			state.SetWorkload(&cluster.Workload{Kind: cluster.Service, Namespace: "default", Name: app, Set: map[string]string{"app": app}})
		}
	}
	cs := make([]*engine.Class, classes)
	for k := range classes {
		cs[k] = e.Class(pods[k])
		e.Best(cs[k])
	}
	var placed []types.UID
	fresh := make([]cluster.Pod, b.N)
	for i := range fresh {
		fresh[i] = *pods[i%classes]
		fresh[i].UID = types.UID(fmt.Sprint("u", i))
	}
	limit := 20000 // pods before the cluster is emptied: 100 of each of 200 classes
	if classes == 1 && pods[0].Terms != nil {
		limit = 4500
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		k := i % classes
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
