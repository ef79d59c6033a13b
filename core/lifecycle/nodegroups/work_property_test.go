package nodegroups_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/lifecycle/launching"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyListsAreReadInLinearWork draws sizes, and lists in which instances are late, have
// failed, have gone or have come. As many nodes and groups are looked at as there are nodes, groups
// and instances, whatever becomes of them.
func TestPropertyListsAreReadInLinearWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := []launching.Limit{0, 10, launching.Adaptive}
		launches := launching.Config{Cluster: limits[testkit.Uniform(t, 3, "limit")], Group: limits[testkit.Uniform(t, 3, "limit per group")]}
		numGroups, numNodes := rapid.IntRange(1, 30).Draw(t, "groups"), rapid.IntRange(0, 100).Draw(t, "nodes")
		m, turn, groups := newOf(numGroups, numNodes, launches)
		instances := 0
		for range rapid.IntRange(1, 4).Draw(t, "lists") {
			for range rapid.IntRange(0, 200).Draw(t, "instances") {
				g := &groups[testkit.Uniform(t, numGroups, "group")]
				instances++
				inst := nodegroup.Instance{ID: fmt.Sprint("late", instances)}
				if testkit.Uniform(t, 5, "failed") == 0 {
					inst.Failed = "broken"
				}
				if n := len(g.Instances); n > 0 && testkit.Uniform(t, 10, "gone") == 0 {
					g.Instances = g.Instances[: n-1 : n-1]
				}
				g.Instances, g.Target = append(g.Instances[:len(g.Instances):len(g.Instances)], inst), g.Target+1
			}
			before := m.Examined()
			m.GroupsSet(turn, step.GroupsSet{Groups: groups})
			if looked, most := m.Examined()-before, numNodes+2*numGroups+instances; looked > most {
				t.Fatalf("%d nodes and groups were looked at for one list with %d nodes, %d groups and %d instances, want at most %d", looked, numNodes, numGroups, instances, most)
			}
			turn.Now = turn.Now.Add(time.Duration(testkit.Uniform(t, 20, "minutes")) * time.Minute)
		}
	})
}
