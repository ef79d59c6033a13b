package planner_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// BenchmarkPlan makes one plan, on a planner that has made none before, for pods that all
// wait at once and groups without nodes. It says how many nodes are proposed.
func BenchmarkPlan(b *testing.B) {
	for _, c := range testkit.PlanCases() {
		b.Run(c.Name, func(b *testing.B) {
			schema := cluster.NewSchema()
			pending := c.Pending(schema)
			nodes := 0
			for b.Loop() {
				b.StopTimer()
				p := follow(b, c.Cluster(schema))
				if err := p.CatchUp(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				plan := p.Plan(autoscaler.Request{Number: 1, Now: time.Unix(1000, 0), ServerNow: time.Unix(1000, 0), Pending: pending})
				nodes = 0
				for _, up := range plan.ScaleUps {
					nodes += up.Nodes
				}
			}
			b.ReportMetric(float64(nodes), "nodes")
		})
	}
}

// BenchmarkPlanWhileLaunching makes one plan for 18,000 pods that need a node each, while the
// nodes of all but 200 are ordered and none is registered: what a burst costs at each plan.
func BenchmarkPlanWhileLaunching(b *testing.B) {
	const pods, ordered = 18000, 17800
	schema := cluster.NewSchema()
	primary := cluster.New(schema)
	t := testkit.Node("g").Alloc("cpu", "8", "memory", "32Gi", "pods", "110")
	primary.SetGroup("g", &cluster.NodeGroup{ID: "g", Target: ordered, Max: pods, Template: schema.ParseNode(t.Obj(), "g")})
	req := autoscaler.Request{Number: 1, Now: time.Unix(1000, 0), ServerNow: time.Unix(1000, 0)}
	for i := range pods {
		pod := testkit.Pod(fmt.Sprint("p", i)).Label("app", "a").Owner("apps/v1", "ReplicaSet", "a").Req("cpu", "7", "memory", "28Gi")
		req.Pending = append(req.Pending, schema.ParsePod(pod.Obj()))
		if i < ordered {
			req.Places = append(req.Places, autoscaler.Place{Group: "g", Pods: []types.UID{req.Pending[i].UID}})
		}
	}
	p := follow(b, primary)
	if err := p.CatchUp(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if plan := p.Plan(req); len(plan.ScaleUps) != 1 || plan.ScaleUps[0].Nodes != pods-ordered || plan.Covered != ordered {
			b.Fatalf("the plan covers %d pods and buys %+v", plan.Covered, plan.ScaleUps)
		}
	}
}

// BenchmarkPlanForNothing plans with nothing pending, 5,000 nodes with as many extended
// resources as a large trace has, and a hundredth of them changed since the last plan.
func BenchmarkPlanForNothing(b *testing.B) {
	const nodes, resources = 5000, 154
	schema := cluster.NewSchema()
	primary := cluster.New(schema)
	p := follow(b, primary)
	alloc := []string{"cpu", "32", "memory", "128Gi", "pods", "110"}
	for k := range resources {
		alloc = append(alloc, fmt.Sprint("example.com/device-", k), "4")
	}
	template := testkit.Node("g").Alloc(alloc...)
	primary.SetGroup("g", &cluster.NodeGroup{ID: "g", Max: nodes, Target: nodes, Template: schema.ParseNode(template.Obj(), "g")})
	var infos []*cluster.NodeInfo
	for i := range nodes {
		n := testkit.Node(fmt.Sprint("n", i)).Alloc(alloc...)
		infos = append(infos, schema.ParseNode(n.Obj(), "g"))
		primary.SetNode(infos[i])
		for k := range 10 {
			primary.Place(schema.ParsePod(testkit.Pod(fmt.Sprint("p", i, "-", k)).Req("cpu", "1").Obj()), infos[i].Name)
		}
	}
	if err := p.CatchUp(); err != nil {
		b.Fatal(err)
	}
	now, at := time.Unix(100000, 0), 0
	for b.Loop() {
		for range nodes / 100 {
			i := at % nodes
			at++
			primary.Place(schema.ParsePod(testkit.Pod(fmt.Sprint("p", i, "-0")).Req("cpu", fmt.Sprint(1+at/nodes%2)).Obj()), infos[i].Name)
		}
		if err := p.CatchUp(); err != nil {
			b.Fatal(err)
		}
		p.Plan(autoscaler.Request{Number: 1, Now: now, ServerNow: now})
	}
}
