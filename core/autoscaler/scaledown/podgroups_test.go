package scaledown_test

import (
	"fmt"
	"testing"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/internal/test/testkit"
)

// wholeGroupOnNodes returns nodes of which each has a member of one pod group whose members are evicted together;
// the pod of the last node may not be evicted, so all stay.
func wholeGroupOnNodes(t *testing.T, nodes int) *passes {
	var lines []string
	for i := range nodes {
		lines = append(lines, fmt.Sprintf("n%04d:", i))
	}
	p := newPasses(t, lines...)
	g := testkit.PodGroup("whole", nodes, "")
	g.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	p.s.SetObject(g)
	for i := range nodes {
		b := testkit.Pod(fmt.Sprintf("m%04d", i)).Req("cpu", "3").PodGroup("whole")
		if i < nodes-1 {
			b.Owner("apps/v1", "ReplicaSet", "r")
		}
		p.s.Place(p.s.Schema.ParsePod(b.Obj()), fmt.Sprintf("n%04d", i))
	}
	priced := *p.s.Group("g")
	priced.Price = 1
	p.s.SetGroup("g", &priced)
	return p
}

// TestNodesThatGoTogetherAreFoundOnce counts the nodes that a pass and a search for a consolidation look at where all
// nodes have members of one pod group: these grow as the nodes do, though no set of nodes can go.
func TestNodesThatGoTogetherAreFoundOnce(t *testing.T) {
	for _, c := range []struct {
		name        string
		utilization float64 // above it a node is kept by a pass
	}{{"of which each could go by its use", 1}, {"of which none could", 0.1}} {
		steps := func(nodes int) (first, again int) {
			p := wholeGroupOnNodes(t, nodes)
			p.req.ScaleDown.Rules.UtilizationThreshold = c.utilization
			p.req.ScaleDown.Consolidate = &autoscaler.Consolidate{}
			count := 0
			p.sim.Between(func() { count++ })
			look := func() int {
				count = 0
				plan := pass(p.sim, p.req)
				p.sim.Consolidate(p.req, 1, &autoscaler.Questions{}, plan)
				if len(plan.Removals) > 0 || plan.Consolidation != nil || len(plan.Kept) != nodes {
					t.Fatalf("%d nodes, %s: %d go and %d stay, consolidation %v", nodes, c.name, len(plan.Removals), len(plan.Kept), plan.Consolidation)
				}
				return count
			}
			return look(), look()
		}
		first, again := steps(40)
		larger, largerAgain := steps(160)
		if larger > 5*first || largerAgain > 5*again {
			t.Errorf("nodes %s: 40 take %d and %d steps, 160 take %d and %d", c.name, first, again, larger, largerAgain)
		}
	}
}
