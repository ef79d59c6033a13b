package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyPodsThatFitTogetherFitEach nominates random pods to nodes of random clusters:
// where a node takes them all together, it takes each of them beside the others, as the
// scheduler has it.
func TestPropertyPodsThatFitTogetherFitEach(t *testing.T) {
	together, several := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		schema := cluster.NewSchema()
		w := testkit.NewWorld(cluster.New(schema), 3)
		w.Furnish(t)
		var log []string
		for range testkit.Uniform(t, 15, "changes") {
			log = append(log, w.Change(t))
		}
		sched := testkit.Must(scheduler.New(w.State, []*framework.Profile{plugins.Default(schema, plugins.Options{})}, engine.Options{}))
		w.State.SetNode(schema.ParseNode(testkit.Node("roomy").Alloc("cpu", "4", "memory", "8Gi", "pods", "5").Obj(), ""))
		for i := range 1 + testkit.Uniform(t, 5, "nominated") {
			p, to := w.Pod(t, fmt.Sprint("nominated", i)), w.Nodes[testkit.Uniform(t, len(w.Nodes), "to")]
			if testkit.Uniform(t, 2, "small") == 0 {
				b := testkit.Pod(p.Name).Req("cpu", fmt.Sprint(1+testkit.Uniform(t, 2, "cpu"))).Priority(int32(testkit.Uniform(t, 2, "priority")))
				if testkit.Uniform(t, 3, "port") == 0 {
					b.HostPort(80)
				}
				p, to = b.Obj(), "roomy"
			}
			p.Spec.NodeName = ""
			w.State.Nominate(schema.ParsePod(p), to)
		}
		w.State.Nodes(func(n *cluster.Node) {
			if len(n.Nominated) == 0 || !lifecycle.FitTogether(w.State, sched, n) {
				return
			}
			together++
			if len(n.Nominated) > 1 {
				several++
			}
			for _, p := range n.Nominated {
				if !sched.FitsNominated(p, sched.Class(p)) {
					t.Fatalf("node %s takes %d pods together, and %s doesn't fit beside the others\n%s", n.Name, len(n.Nominated), p.Name(), strings.Join(log, "\n"))
				}
			}
		})
	})
	if together == 0 || several == 0 {
		t.Errorf("%d nodes took their pods together, %d of them several: the test shows nothing", together, several)
	}
}
