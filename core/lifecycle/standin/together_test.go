package standin_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle/standin"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/internal/testkit"
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
		for i := range 1 + testkit.Uniform(t, 5, "nominated") {
			p := w.Pod(t, fmt.Sprint("nominated", i))
			p.Spec.NodeName = ""
			w.State.Nominate(schema.ParsePod(p), w.Nodes[testkit.Uniform(t, len(w.Nodes), "to")])
		}
		w.State.Nodes(func(n *cluster.Node) {
			if len(n.Nominated) == 0 || !standin.FitTogether(w.State, sched, n) {
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
