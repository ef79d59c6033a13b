package scaledown_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// newSimulator returns one that has followed a cluster, with a request.
func newSimulator(tb rapid.TB, s *cluster.State) (*scaledown.Simulator, *autoscaler.Request) {
	sim, err := scaledown.New(s, []*framework.Profile{plugins.Default(s.Schema, plugins.Options{})}, engine.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return sim, &autoscaler.Request{Now: time.Unix(100000, 0), ServerNow: time.Unix(100000, 0), ScaleDown: &autoscaler.ScaleDown{Rules: autoscaler.RemovalRules{
		UtilizationThreshold: 0.5, GPUUtilizationThreshold: 0.5, SkipSystemPods: true, SkipLocalStorage: true, SkipCustomControllerPods: true, RecheckAfter: 5 * time.Minute}}}
}

func pass(sim *scaledown.Simulator, req *autoscaler.Request) *autoscaler.Plan {
	plan := autoscaler.NewPlan(req, 0)
	sim.Plan(req, &autoscaler.Questions{}, plan)
	sim.Forget(req.Now)
	return plan
}

// BenchmarkPass is one pass from nothing over nodes with 30 pods each at 40 % utilisation, with
// budgets and owners, after the simulator has followed the cluster; and the next, with 1 % of
// the nodes changed.
func BenchmarkPass(b *testing.B) {
	for _, c := range []testkit.PartFull{
		{Nodes: 1000, PerNode: 30, Owners: 200, Shapes: 1},
		{Nodes: 5000, PerNode: 30, Owners: 200, Shapes: 1},
		{Nodes: 5000, PerNode: 30, Owners: 5000, Shapes: 1},
		{Nodes: 5000, PerNode: 30, Owners: 5000, Shapes: 107},
	} {
		name := fmt.Sprintf("%dnodes/%dclasses/%dshapes", c.Nodes, c.Owners, c.Shapes)
		s := c.State()
		b.Run(name+"/full", func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				sim, req := newSimulator(b, s)
				sim.Follow()
				b.StartTimer()
				b.ReportMetric(float64(len(pass(sim, req).Removals)), "removable")
			}
		})
		b.Run(name+"/next", func(b *testing.B) {
			sim, req := newSimulator(b, s)
			pass(sim, req)
			round := 0
			for b.Loop() {
				b.StopTimer()
				for i := range c.Nodes / 100 { // one pod of each is another
					n := (i*97 + round*31) % c.Nodes
					k := (n + (round%30)*c.Nodes) % (c.PerNode * c.Nodes)
					s.Remove(s.Schema.ParsePod(c.Pod(k)).UID)
					s.Place(s.Schema.ParsePod(c.Pod(k)), c.NodeName(n))
				}
				round++
				req.Now = req.Now.Add(10 * time.Second)
				b.StartTimer()
				b.ReportMetric(float64(len(pass(sim, req).Removals)), "removable")
			}
		})
	}
}
