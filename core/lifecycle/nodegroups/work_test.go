package nodegroups_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
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

// This file counts the work that node groups make of a cluster in which much happens at once.

const (
	manyGroups = 100
	manyNodes  = 1000
)

// newMany returns a machine with many groups and nodes.
func newMany(launches launching.Config) (*nodegroups.Machine, *lifecycle.Turn, []nodegroup.Group) {
	return newOf(manyGroups, manyNodes, launches)
}

// newOf returns a machine with so many groups and nodes, in a cluster whose launches are limited.
func newOf(numGroups, numNodes int, launches launching.Config) (*nodegroups.Machine, *lifecycle.Turn, []nodegroup.Group) {
	turn := &lifecycle.Turn{Now: time.Unix(1000, 0), State: cluster.New(cluster.NewSchema()), Ready: &step.Ready{}}
	m := nodegroups.New(nodegroups.Config{
		MaxProvisionTime: 15 * time.Minute, InitialBackoff: time.Minute, MaxBackoff: time.Minute, BackoffReset: time.Hour,
		Readiness: autoscaler.Readiness{StartupTime: 15 * time.Minute},
	}, &fakeDeletions{}, launching.New(launches))
	var groups []nodegroup.Group
	for i := range numGroups {
		groups = append(groups, nodegroup.Group{ID: fmt.Sprint("g", i), Max: 1000, Template: testkit.Node("t").Obj(), Instances: []nodegroup.Instance{}})
	}
	for i := range numNodes {
		g := &groups[i%numGroups]
		n := testkit.Node(fmt.Sprint("n", i)).Obj()
		n.Spec.ProviderID = n.Name
		turn.State.SetNode(turn.State.Schema.ParseNode(n, g.ID))
		g.Instances = append(g.Instances, nodegroup.Instance{ID: n.Name})
		g.Target++
	}
	return m, turn, groups
}

// TestWorkOfManyInstancesThatAreLateInOneList has many instances be late in one list. Nodes and
// groups are looked at as often as for one of them.
func TestWorkOfManyInstancesThatAreLateInOneList(t *testing.T) {
	for _, launches := range []launching.Config{{}, {Cluster: launching.Adaptive, Group: launching.Adaptive}} {
		m, turn, groups := newMany(launches)
		const late = 2000
		for i := range late {
			g := &groups[i%manyGroups]
			g.Instances = append(g.Instances, nodegroup.Instance{ID: fmt.Sprint("late", i)})
			g.Target++
		}
		m.GroupsSet(turn, step.GroupsSet{Groups: groups})
		turn.Now = turn.Now.Add(15 * time.Minute)
		before := m.Examined()
		m.GroupsSet(turn, step.GroupsSet{Groups: groups})
		if n := len(turn.Ready.NodeDeletions); n != late {
			t.Fatalf("%d instances are deleted, want %d", n, late)
		}
		if looked, most := m.Examined()-before, manyNodes+2*manyGroups+late; looked > most {
			t.Errorf("with limits %v, %d nodes and groups were looked at for %d late instances, want at most %d", launches, looked, late, most)
		}
	}
}

// TestWorkOfManyProposalsUnderALaunchLimit has a plan propose nodes of many groups. Nodes are looked
// at as often as for one proposal.
func TestWorkOfManyProposalsUnderALaunchLimit(t *testing.T) {
	m, turn, groups := newMany(launching.Config{Cluster: 10 * manyGroups})
	m.GroupsSet(turn, step.GroupsSet{Groups: groups})
	before := m.Examined()
	var ups []autoscaler.ScaleUp
	for i := range groups {
		pods := []types.UID{types.UID(groups[i].ID)}
		ups = append(ups, autoscaler.ScaleUp{Group: groups[i].ID, Nodes: 1, Pods: pods, Bins: [][]types.UID{pods}})
	}
	if !m.HasRoom(turn, ups) {
		t.Fatal("there is no room")
	}
	for i := range ups {
		m.CommitScaleUp(turn, &ups[i], func(types.UID) bool { return true })
	}
	if n := len(turn.Ready.ScaleUps); n != manyGroups {
		t.Fatalf("%d groups grow, want %d", n, manyGroups)
	}
	if looked, most := m.Examined()-before, manyNodes+3*manyGroups; looked > most {
		t.Errorf("%d nodes and groups were looked at for %d proposals, want at most %d", looked, manyGroups, most)
	}
}

// TestGroupsThatAreGoneAreForgotten has a provider that makes and deletes a group every hour.
func TestGroupsThatAreGoneAreForgotten(t *testing.T) {
	m, turn, _ := newMany(launching.Config{Cluster: launching.Adaptive, Group: launching.Adaptive})
	for i := range 100 {
		g := nodegroup.Group{ID: fmt.Sprint("h", i), Max: 10, Target: 1, Template: testkit.Node("t").Obj(), Instances: []nodegroup.Instance{{ID: "i", Failed: "broken"}}}
		for range 3 {
			m.GroupsSet(turn, step.GroupsSet{Groups: []nodegroup.Group{g}})
			turn.Now = turn.Now.Add(20 * time.Minute)
		}
	}
	if n := m.Groups(); n > 10 {
		t.Errorf("%d groups are remembered of 100, the last of which is listed; want at most 10", n)
	}
	if n := len(turn.State.Groups()); n != 1 {
		t.Errorf("the state has %d groups, want the one that is listed", n)
	}
}

// TestGoneByOwnList has a list name a node of another group, whose own list doesn't have it.
func TestGoneByOwnList(t *testing.T) {
	m, turn, groups := newOf(2, 2, launching.Config{}) // n0 is of g0, n1 of g1
	n := testkit.Node("n0").Obj()
	n.Spec.ProviderID = "n0"
	for i := range n.Status.Conditions {
		n.Status.Conditions[i].Status = v1.ConditionFalse
	}
	turn.State.SetNode(turn.State.Schema.ParseNode(n, "g0"))
	for _, c := range []struct {
		name string
		g    int
		inst nodegroup.Instance
		want bool
	}{
		{"the other's list names it", 1, nodegroup.Instance{ID: "x", Node: "n0"}, true},
		{"the other's list has its ID", 1, nodegroup.Instance{ID: "n0"}, true},
		{"its own names it", 0, nodegroup.Instance{ID: "x", Node: "n0"}, false},
		{"its own has its ID", 0, nodegroup.Instance{ID: "n0"}, false},
	} {
		groups[0].Instances, groups[1].Instances = []nodegroup.Instance{}, []nodegroup.Instance{}
		groups[c.g].Instances = []nodegroup.Instance{c.inst}
		m.GroupsSet(turn, step.GroupsSet{Groups: groups})
		if got := m.Lost(turn.State.NodeByName("n0").NodeInfo); got != c.want {
			t.Errorf("%s: the node is lost: %t, want %t", c.name, got, c.want)
		}
	}
}
