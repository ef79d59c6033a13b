package core_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// BenchmarkArrival has 2,000 ordered nodes come and turn ready, 20 at a time, for 18,000
// pods, while other pods are placed on 1,000 nodes that are there: the time per pod
// when a node comes, when a pod is placed where it has its place, and when another pod is
// decided on while 18,000 are nominated.
func BenchmarkArrival(b *testing.B) {
	for _, kind := range []string{"plain", "hard zone spread"} {
		b.Run(kind, func(b *testing.B) { benchmarkArrival(b, kind != "plain") })
	}
}

func benchmarkArrival(b *testing.B, spread bool) {
	const nodes, perNode, batch = 2000, 9, 20
	var registering, arriving, others time.Duration
	for b.Loop() {
		b.StopTimer()
		schema := cluster.NewSchema()
		cfg := core.DefaultConfig(plugins.Default(schema, plugins.Options{}))
		cfg.PodsPerStep = 1 << 20
		a := core.DefaultAutoscale()
		cfg.Autoscale = &a
		c, err := core.New(schema, cfg)
		if err != nil {
			b.Fatal(err)
		}
		now := time.Unix(1000, 0)
		node := func(i int, ready bool) step.Input {
			n := testkit.Node(fmt.Sprint("n", i)).Alloc("cpu", "9", "memory", "32Gi").Zone(fmt.Sprint("z", i%3))
			if !ready {
				n.Taint(v1.TaintNodeNotReady, "", v1.TaintEffectNoSchedule)
			}
			return step.NodeSet{Node: n.Obj(), Group: "g"}
		}
		template := node(0, true).(step.NodeSet).Node
		var in []step.Input
		for i := range 1000 {
			in = append(in, step.NodeSet{Node: testkit.Node(fmt.Sprint("old", i)).Alloc("cpu", "900m", "memory", "32Gi").Zone(fmt.Sprint("z", i%3)).Obj()})
		}
		up := autoscaler.ScaleUp{Group: "g", Nodes: nodes}
		for i := range nodes * perNode {
			p := testkit.Pod(fmt.Sprint("p", i)).Label("app", "web").Req("cpu", "1", "memory", "1Gi")
			if spread {
				p.SpreadHard(v1.LabelTopologyZone, 5000, "app", "web")
			}
			obj := p.Obj()
			in = append(in, step.PodSet{Pod: obj})
			if i%perNode == 0 {
				up.Bins = append(up.Bins, nil)
			}
			up.Pods = append(up.Pods, obj.UID)
			up.Bins[i/perNode] = append(up.Bins[i/perNode], obj.UID)
		}
		r := c.Step(now, door.Must(append(in, step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Max: nodes, Template: template}}})...)...)
		plan := autoscaler.NewPlan(r.Plan, 0)
		plan.ScaleUps = []autoscaler.ScaleUp{up}
		c.Step(now, door.Must(step.PlanMade{Plan: plan})...)
		c.Step(now, door.Must(step.ScaleUpDone{Group: "g", Nodes: nodes})...)
		bound := map[types.UID]bool{}
		take := func(r step.Ready, d *time.Duration, start time.Duration) {
			*d += b.Elapsed() - start
			for _, x := range r.Binds {
				bound[x.UID] = true
			}
		}
		b.StartTimer()
		for _, ready := range []bool{false, true} {
			for k := 0; k < nodes; k += batch {
				now = now.Add(10 * time.Millisecond)
				var in []step.Input
				for i := range batch {
					in = append(in, node(k+i, ready))
				}
				start := b.Elapsed()
				if ready {
					take(c.Step(now, door.Must(in...)...), &arriving, start)
					continue
				}
				take(c.Step(now, door.Must(in...)...), &registering, start)
				start = b.Elapsed()
				take(c.Step(now, door.Must(step.PodSet{Pod: testkit.Pod(fmt.Sprint("other", k)).Req("cpu", "100m", "memory", "1Gi").Obj()})...), &others, start)
			}
		}
		if want := nodes*perNode + nodes/batch; len(bound) != want {
			b.Fatalf("%d pods are bound, want %d", len(bound), want)
		}
	}
	b.ReportMetric(float64(registering.Microseconds())/float64(b.N*nodes*perNode), "µs/pod-registering")
	b.ReportMetric(float64(arriving.Microseconds())/float64(b.N*nodes*perNode), "µs/pod-arriving")
	b.ReportMetric(float64(others.Microseconds())/float64(b.N*nodes/batch), "µs/other-pod")
}
