package nodegroups_test

import (
	"testing"
	"time"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/launching"
	"github.com/berthproject/berth/core/lifecycle/nodegroups"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestAnInstanceThatGroupsListUnderSeveralNames has an instance leave its group, and two others list it:
// one without its node's name, and one with that of a node.
func TestAnInstanceThatGroupsListUnderSeveralNames(t *testing.T) {
	turn := &lifecycle.Turn{Now: time.Unix(1000, 0), State: cluster.New(cluster.NewSchema()), Ready: &step.Ready{}}
	turn.State.SetNode(turn.State.Schema.ParseNode(testkit.Node("n").Obj(), "c"))
	m := nodegroups.New(nodegroups.Config{MaxProvisionTime: time.Hour}, &fakeDeletions{}, launching.New(launching.Config{}))
	list := func(a, b, c []nodegroup.Instance) {
		in := step.GroupsSet{}
		for i, instances := range [][]nodegroup.Instance{a, b, c} {
			in.Groups = append(in.Groups, nodegroup.Group{ID: string(rune('a' + i)), Max: 3, Template: testkit.Node("t").Obj(), Instances: instances})
		}
		m.GroupsSet(turn, in)
	}
	none := []nodegroup.Instance{}
	list([]nodegroup.Instance{{ID: "i"}}, none, none)
	list(none, []nodegroup.Instance{{ID: "i"}}, []nodegroup.Instance{{ID: "i", Node: "n"}})
	if broken := m.Invariants(); len(broken) > 0 {
		t.Errorf("broken: %v", broken)
	}
	list(none, []nodegroup.Instance{{ID: "i"}}, none)
	if got := m.Remembers(); len(got) != 1 || got[0] != "instance i of b: coming" {
		t.Errorf("it remembers %q, want the instance as one of b", got)
	}
}

// TestLaunchesMoveWithTheirGroup has a group get another name while its instances launch: launch control
// counts them under that.
func TestLaunchesMoveWithTheirGroup(t *testing.T) {
	turn := &lifecycle.Turn{Now: time.Unix(1000, 0), State: cluster.New(cluster.NewSchema()), Ready: &step.Ready{}}
	launches := launching.New(launching.Config{})
	m := nodegroups.New(nodegroups.Config{MaxProvisionTime: time.Hour}, &fakeDeletions{}, launches)
	for _, group := range []string{"old", "new"} {
		m.GroupsSet(turn, step.GroupsSet{Groups: []nodegroup.Group{{ID: group, Max: 3, Target: 1, Template: testkit.Node("t").Obj(), Instances: []nodegroup.Instance{{ID: "i"}}}}})
		if n := len(launches.Underway(group)); n != 1 {
			t.Errorf("%d launches of %s are under way, want 1", n, group)
		}
	}
	if n := len(launches.Underway("old")); n != 0 {
		t.Errorf("%d launches of the old name are under way, want none", n)
	}
}
