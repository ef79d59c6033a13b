package planner_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// BenchmarkPlanGangs makes one plan for pod groups of 64 members that require a rack, where a rack has 18 nodes of which each
// takes four members, and is bought whole: for 20 of them in as many racks of each of 4 kinds of nodes, and for 10,000 for
// which there is no rack.
func BenchmarkPlanGangs(b *testing.B) {
	for _, x := range []struct{ gangs, racks, bought int }{{20, 20, 20}, {10_000, 0, 0}, {10_000, 20, 80}} {
		b.Run(fmt.Sprintf("%d gangs, %d racks of each kind", x.gangs, x.racks), func(b *testing.B) {
			schema := cluster.NewSchema()
			req := autoscaler.Request{Number: 1, Now: time.Unix(1000, 0), ServerNow: time.Unix(1000, 0)}
			for i := range x.gangs {
				g := autoscaler.Gang{Key: cluster.PodGroupKey{Namespace: "default", Name: fmt.Sprint("g", i)}, MinCount: 64, Topologies: []string{"rack"}}
				for k := range 64 {
					g.Members = append(g.Members, schema.ParsePod(testkit.Pod(fmt.Sprint("g", i, "-", k)).Req("cpu", "16", "memory", "64Gi").PodGroup(g.Key.Name).Obj()))
				}
				req.Gangs = append(req.Gangs, g)
			}
			for b.Loop() {
				b.StopTimer()
				p := follow(b, gangCluster(schema, x.gangs, x.racks))
				if err := p.CatchUp(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				bought := 0
				for _, g := range p.Plan(req).Gangs {
					if g.Nodes == 18 {
						bought++
					}
				}
				if bought != x.bought {
					b.Fatalf("racks are bought for %d groups, want %d", bought, x.bought)
				}
			}
		})
	}
}

// gangCluster has so many pod groups, and racks of each of four kinds that can be bought.
func gangCluster(schema *cluster.Schema, gangs, racks int) *cluster.State {
	s := cluster.New(schema)
	for i := range gangs {
		s.SetObject(testkit.PodGroup(fmt.Sprint("g", i), 64, "rack"))
	}
	for kind := range 4 {
		for i := range max(racks, 1) {
			id := fmt.Sprintf("kind%d-%02d", kind, i)
			t := testkit.Node(id).Alloc("cpu", fmt.Sprint(64+4*kind), "memory", "512Gi", "pods", "110").Label("rack", id)
			g := &cluster.NodeGroup{ID: id, Max: 18, Template: schema.ParseNode(t.Obj(), id), Options: &cluster.GroupOptions{ZeroOrMax: true}}
			if racks == 0 {
				g.Max = 15 // too few
			}
			s.SetGroup(id, g)
		}
	}
	return s
}
