package planner_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/testkit"
)

// BenchmarkPlan makes one plan, on a planner that has made none before, for pods that all
// wait at once and groups without nodes. It says how many nodes are proposed.
func BenchmarkPlan(b *testing.B) {
	const pods = 22000
	whole := func(int) *testkit.PodBuilder { return replica(0).Req("cpu", "7", "memory", "28Gi") }
	for _, x := range []struct {
		name   string
		groups int
		zones  int // that the groups are in
		pods   int
		pod    func(i int) *testkit.PodBuilder
	}{
		{"plain, 1 per node", 2, 1, pods, whole},
		{"plain, 8 per node", 2, 1, pods, func(int) *testkit.PodBuilder { return replica(0).Req("cpu", "1", "memory", "4Gi") }},
		{"node affinity, 1 per node", 2, 1, 18000, func(i int) *testkit.PodBuilder { return whole(i).RequireIn("pool", "batch") }},
		{"own labels each, no owner", 2, 1, pods, func(i int) *testkit.PodBuilder {
			return testkit.Pod(fmt.Sprint("p", i)).Label("index", fmt.Sprint(i)).Req("cpu", "7", "memory", "28Gi")
		}},
		{"hostname anti-affinity", 2, 1, pods, func(int) *testkit.PodBuilder {
			return replica(0).Req("cpu", "1", "memory", "1Gi").Apart(v1.LabelHostname, "app", "a0")
		}},
		{"hard zone spread, 3 zones", 3, 3, pods, func(int) *testkit.PodBuilder {
			return replica(0).Req("cpu", "1", "memory", "4Gi").SpreadHard(v1.LabelTopologyZone, 1, "app", "a0")
		}},
		{"500 shapes", 2, 1, pods, func(i int) *testkit.PodBuilder {
			k := i % 500
			return replica(k).Req("cpu", fmt.Sprintf("%dm", 100+k*10), "memory", fmt.Sprintf("%dMi", 200+(k*37)%9000))
		}},
	} {
		b.Run(x.name, func(b *testing.B) {
			schema := cluster.NewSchema()
			var pending []*cluster.Pod
			for i := range x.pods {
				builder := x.pod(i)
				builder.Name, builder.UID = fmt.Sprint("p", i), ""
				p := testkit.Pod(builder.Name)
				p.Labels, p.OwnerReferences, p.Spec = builder.Labels, builder.OwnerReferences, builder.Spec
				pending = append(pending, schema.ParsePod(p.Obj()))
			}
			nodes := 0
			for b.Loop() {
				b.StopTimer()
				leader := cluster.New(schema)
				for g := range x.groups {
					t := testkit.Node(fmt.Sprint("ng-", g)).Alloc("cpu", "8", "memory", "32Gi", "pods", "110").Zone(fmt.Sprint("z", g%x.zones))
					t.Labels["pool"] = "batch"
					leader.SetGroup(t.Name, &cluster.NodeGroup{ID: t.Name, Max: 30000, Template: schema.ParseNode(t.Obj(), t.Name)})
				}
				p := follow(b, leader)
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
	leader := cluster.New(schema)
	t := testkit.Node("g").Alloc("cpu", "8", "memory", "32Gi", "pods", "110")
	leader.SetGroup("g", &cluster.NodeGroup{ID: "g", Target: ordered, Max: pods, Template: schema.ParseNode(t.Obj(), "g")})
	req := autoscaler.Request{Number: 1, Now: time.Unix(1000, 0), ServerNow: time.Unix(1000, 0)}
	for i := range pods {
		pod := testkit.Pod(fmt.Sprint("p", i)).Label("app", "a").Owner("apps/v1", "ReplicaSet", "a").Req("cpu", "7", "memory", "28Gi")
		req.Pending = append(req.Pending, schema.ParsePod(pod.Obj()))
		if i < ordered {
			req.Places = append(req.Places, autoscaler.Place{Group: "g", Pods: []types.UID{req.Pending[i].UID}})
		}
	}
	p := follow(b, leader)
	if err := p.CatchUp(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if plan := p.Plan(req); len(plan.ScaleUps) != 1 || plan.ScaleUps[0].Nodes != pods-ordered || plan.Covered != ordered {
			b.Fatalf("the plan covers %d pods and buys %+v", plan.Covered, plan.ScaleUps)
		}
	}
}

// replica returns a pod of a ReplicaSet.
func replica(app int) *testkit.PodBuilder {
	name := fmt.Sprint("a", app)
	return testkit.Pod("").Label("app", name).Owner("apps/v1", "ReplicaSet", name)
}

// BenchmarkPlanForNothing plans with nothing pending, 5,000 nodes with as many extended
// resources as a large trace has, and a hundredth of them changed since the last plan.
func BenchmarkPlanForNothing(b *testing.B) {
	const nodes, resources = 5000, 154
	schema := cluster.NewSchema()
	leader := cluster.New(schema)
	p := follow(b, leader)
	alloc := []string{"cpu", "32", "memory", "128Gi", "pods", "110"}
	for k := range resources {
		alloc = append(alloc, fmt.Sprint("example.com/device-", k), "4")
	}
	template := testkit.Node("g").Alloc(alloc...)
	leader.SetGroup("g", &cluster.NodeGroup{ID: "g", Max: nodes, Target: nodes, Template: schema.ParseNode(template.Obj(), "g")})
	var infos []*cluster.NodeInfo
	for i := range nodes {
		n := testkit.Node(fmt.Sprint("n", i)).Alloc(alloc...)
		infos = append(infos, schema.ParseNode(n.Obj(), "g"))
		leader.SetNode(infos[i])
		for k := range 10 {
			leader.Place(schema.ParsePod(testkit.Pod(fmt.Sprint("p", i, "-", k)).Req("cpu", "1").Obj()), infos[i].Name)
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
			leader.Place(schema.ParsePod(testkit.Pod(fmt.Sprint("p", i, "-0")).Req("cpu", fmt.Sprint(1+at/nodes%2)).Obj()), infos[i].Name)
		}
		if err := p.CatchUp(); err != nil {
			b.Fatal(err)
		}
		p.Plan(autoscaler.Request{Number: 1, Now: now, ServerNow: now})
	}
}
