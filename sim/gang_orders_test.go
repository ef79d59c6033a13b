package sim

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestOrdersForAGangAreWhole has a Step order what a plan has for a gang without places for its members, or some of it.
func TestOrdersForAGangAreWhole(t *testing.T) {
	const few = "nodes are ordered for pod group default/gang, and only 0 of the 3 members that it needs have nodes or places"
	up := func(group, gang string, nodes int) autoscaler.ScaleUp {
		return autoscaler.ScaleUp{Group: group, Gang: gang, Nodes: nodes}
	}
	for _, c := range []struct {
		name    string
		plan    []autoscaler.ScaleUp
		ordered []step.ScaleUp
		want    []string
	}{
		{"nothing is ordered", []autoscaler.ScaleUp{up("a", "default/gang", 2)}, []step.ScaleUp{{Group: "c", Nodes: 1}}, nil},
		{"all is ordered", []autoscaler.ScaleUp{up("a", "default/gang", 2), up("b", "default/gang", 1)}, []step.ScaleUp{{Group: "a", Nodes: 2}, {Group: "b", Nodes: 1}}, []string{few}},
		{"one group is missing", []autoscaler.ScaleUp{up("a", "default/gang", 2), up("b", "default/gang", 1)}, []step.ScaleUp{{Group: "a", Nodes: 2}},
			[]string{"some of the nodes that a plan has for pod group default/gang are ordered, and others aren't"}},
		{"it may be another's", []autoscaler.ScaleUp{up("a", "default/gang", 2), up("a", "", 1)}, []step.ScaleUp{{Group: "a", Nodes: 1}}, nil},
		{"of a group that doesn't exist", []autoscaler.ScaleUp{up("a", "default/other", 1)}, []step.ScaleUp{{Group: "a", Nodes: 1}}, []string{"nodes are ordered for pod group default/other, which doesn't exist"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := gangWorld(t)
			w.pass(time.Minute)
			w.know(step.ObjectSet{Object: testkit.PodGroup("gang", 3, v1.LabelTopologyZone)})
			plan := &autoscaler.Plan{ScaleUps: c.plan, Gangs: []autoscaler.GangPlan{{Gang: c.plan[0].Gang, Nodes: 1}}}
			w.checkGangOrders([]step.Input{step.PlanMade{Plan: plan}}, &step.Ready{ScaleUps: c.ordered})
			w.wantViolations(t, c.want...)
		})
	}
}
