package nodegroups_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/launching"
	"github.com/berthproject/berth/core/lifecycle/nodegroups"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestOrdersOfAGroupThatIsGoneAreSettled has a group renamed, and named as before again, while an order
// of its has no answer: nothing stays open, and the group isn't ordered beyond its maximum when the
// order may still be carried out. The answer fails to come before the group is gone, and after it.
func TestOrdersOfAGroupThatIsGoneAreSettled(t *testing.T) {
	for _, before := range []bool{true, false} {
		turn := &lifecycle.Turn{Now: time.Unix(1000, 0), State: cluster.New(cluster.NewSchema()), Ready: &step.Ready{}}
		m := nodegroups.New(nodegroups.Config{MaxProvisionTime: time.Hour, BackoffReset: time.Hour}, &fakeDeletions{}, launching.New(launching.Config{}))
		list := func(ids ...string) {
			in := step.GroupsSet{Groups: []nodegroup.Group{}}
			for _, id := range ids {
				in.Groups = append(in.Groups, nodegroup.Group{ID: id, Max: 3, Template: testkit.Node("t").Obj()})
			}
			m.GroupsSet(turn, in)
		}
		order := func() int {
			up := autoscaler.ScaleUp{Group: "g", Nodes: 3, Pods: []types.UID{"a", "b", "c"}, Bins: [][]types.UID{{"a"}, {"b"}, {"c"}}}
			growth, _ := m.CommitScaleUp(turn, &up, func(types.UID) bool { return true })
			return growth.To - growth.From
		}
		noAnswer := func() {
			m.ScaleUpDone(turn, step.ScaleUpDone{Group: "g", Nodes: 3, Err: context.DeadlineExceeded, Unknown: true})
		}
		list("g")
		if n := order(); n != 3 {
			t.Fatalf("%d nodes are ordered, want 3", n)
		}
		if before {
			noAnswer()
		}
		list("h")
		turn.Now = turn.Now.Add(nodegroup.GoneAfter)
		list("h")
		if !before {
			noAnswer()
		}
		if open := m.Unsettled(); turn.State.Group("g") != nil || len(open) > 0 {
			t.Errorf("no answer before the group is gone: %t; its orders are %v, want none", before, open)
		}
		list("g")
		if n := order(); n != 0 {
			t.Errorf("no answer before the group is gone: %t; %d nodes are ordered while three more may come, want 0", before, n)
		}
		turn.Now = turn.Now.Add(2 * time.Minute)
		list("g")
		if n := order(); n != 3 {
			t.Errorf("no answer before the group is gone: %t; %d nodes are ordered in the end, want 3", before, n)
		}
	}
}
