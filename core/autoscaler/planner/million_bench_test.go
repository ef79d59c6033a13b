package planner_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// BenchmarkPlanMillion makes one plan for 1,000,000 pods that all wait at once, 1,000 of
// each of 1,000 classes, and 100 groups without nodes, with the expanders least-waste and
// cost. It says how many nodes are proposed, what they cost an hour, and the largest size
// that the heap has had, with the pods as an informer would hold them.
func BenchmarkPlanMillion(b *testing.B) {
	for _, x := range []struct {
		name  string
		chain expander.Chain
	}{
		{"least-waste", expander.Chain{expander.LeastWaste{}}},
		{"cost", expander.Chain{expander.Cost{}}},
	} {
		b.Run(x.name, func(b *testing.B) {
			schema := cluster.NewSchema()
			pending := testkit.BurstPods(schema, 1000, 1000)
			var plan *autoscaler.Plan
			primary := cluster.New(schema)
			for _, g := range testkit.BurstGroups(schema) {
				primary.SetGroup(g.ID, g)
			}
			for b.Loop() {
				b.StopTimer()
				p := followWith(b, primary, x.chain)
				if err := p.CatchUp(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				plan = p.Plan(autoscaler.Request{Number: 1, Now: time.Unix(1000, 0), ServerNow: time.Unix(1000, 0), Pending: pending})
			}
			nodes, pods, price := 0, plan.Covered, 0.0
			for _, up := range plan.ScaleUps {
				nodes += up.Nodes
				pods += len(up.Pods)
				price += float64(up.Nodes) * primary.Group(up.Group).Price
			}
			if pods != len(pending) {
				b.Fatalf("%d of %d pods have a node: %v", pods, len(pending), plan.NoHelp[0].Reasons)
			}
			var memory runtime.MemStats
			runtime.ReadMemStats(&memory)
			b.ReportMetric(float64(memory.HeapSys)/(1<<30), "GiB")
			b.ReportMetric(float64(nodes), "nodes")
			b.ReportMetric(price, "price")
		})
	}
}
