package scaleup

import (
	"testing"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/internal/test/testkit"
)

// workOf returns what a plan of a case does, and how many nodes it buys.
func workOf(t *testing.T, c testkit.PlanCase) (Work, int) {
	t.Helper()
	schema := cluster.NewSchema()
	state := c.Cluster(schema)
	sched, err := scheduler.New(state, []*framework.Profile{plugins.Default(schema, plugins.Options{})}, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &Packer{State: state, Engine: sched.Engine, Memory: &Memory{}, Questions: &autoscaler.Questions{}}
	now := time.Unix(10000, 0)
	req := autoscaler.Request{Number: 1, Now: now, ServerNow: now, Pending: c.Pending(schema)}
	plan := autoscaler.NewPlan(&req, 0)
	p.Plan(req, plan)
	nodes := 0
	for _, up := range plan.ScaleUps {
		nodes += up.Nodes
	}
	return p.Work(), nodes
}

// TestAPlanForMorePodsAlikeIsNoMoreWork: the estimate of Cluster Autoscaler took 400 s for 22,000 pods of
// a node each, 700 s for 18,000 with node affinity, and more with each node group. A plan does the
// same for any number of pods of one class, whether a node takes one of them or eight, and as much
// more as there are more groups.
func TestAPlanForMorePodsAlikeIsNoMoreWork(t *testing.T) {
	for _, c := range testkit.PublishedPlanCases() {
		t.Run(c.Name, func(t *testing.T) {
			c.Pods = 80
			few, nodes := workOf(t, c)
			c.Pods *= 250
			many, manyNodes := workOf(t, c)
			if many != few || manyNodes != 250*nodes {
				t.Errorf("for %d pods a plan did %+v and bought %d nodes, for 80 pods %+v and %d", c.Pods, many, manyNodes, few, nodes)
			}
			c.Groups *= 50
			most := Work{Nodes: 50 * many.Nodes, Asked: 50 * many.Asked, Packings: 50 * many.Packings, Tried: 50 * many.Tried}
			if w, n := workOf(t, c); w.Nodes > most.Nodes || w.Asked > most.Asked || w.Packings > most.Packings || w.Tried > most.Tried || n != manyNodes {
				t.Errorf("with %d groups a plan did %+v and bought %d nodes, want no more than %+v, and %d nodes", c.Groups, w, n, most, manyNodes)
			}
		})
	}
}
