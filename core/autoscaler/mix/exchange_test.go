package mix_test

import (
	"testing"

	"github.com/berthproject/berth/core/autoscaler/mix"
)

// halfNodes returns classes, groups of which all but the first are a little too small for a node of the
// first, and cheaper, and nodes of the first that differ: each has one pod of each class, and two of one.
func halfNodes(classes, groups, resources, nodes int) (c []mix.Class, g []mix.Group, n []mix.Batch) {
	request := func(class, resource int) int64 { return int64(100 + class*(resource+1)%101) } // no resource says what another does
	var all []int
	for j := range groups {
		free := make([]int64, resources)
		for k := range free {
			for i := range classes {
				free[k] += request(i, k)
			}
			if j == 0 {
				free[k] += 201 // one pod more
			}
		}
		g = append(g, mix.Group{Price: 2 - float64(min(j, 1)), Allocatable: free, Room: nodes})
		all = append(all, j)
	}
	for i := range classes {
		c = append(c, mix.Class{Pods: 2 * nodes, Request: make([]int64, resources), Takes: all})
		for k := range resources {
			c[i].Request[k] = request(i, k)
		}
	}
	for i := range nodes {
		pods := make([]mix.Count, classes)
		for k := range pods {
			pods[k] = mix.Count{Class: k, Pods: 1}
		}
		pods[i%classes].Pods = 2
		n = append(n, mix.Batch{Group: 0, Nodes: 1, Pods: pods})
	}
	return c, g, n
}

// TestExchangesForCheaperNodesAreBounded has nodes of which many cheaper groups hold all pods but one. To ask all groups for all nodes takes more than may be asked; what is asked is counted.
func TestExchangesForCheaperNodesAreBounded(t *testing.T) {
	const classes, groups, resources = 20, 200, 100
	const each = groups + (groups-1)*(classes+1)*resources // for a node
	for _, x := range []struct {
		nodes, want int
	}{
		{10, 10 * each}, {2000, (mix.MaxWork/each + 1) * each},
	} {
		nodes, work := mix.Exchange(halfNodes(classes, groups, resources, x.nodes))
		if work != x.want {
			t.Errorf("%d nodes: it took %d multiplications, want %d", x.nodes, work, x.want)
		}
		for _, n := range nodes {
			if n.Group != 0 {
				t.Fatalf("a node is exchanged for one of group %d, which is too small", n.Group)
			}
		}
	}
}

// TestExchangesGoOnWhereTheyMakeRoom has nodes for which a cheaper group has room, and others which
// want the room that these leave.
func TestExchangesGoOnWhereTheyMakeRoom(t *testing.T) {
	groups := []mix.Group{
		{Price: 1, Allocatable: []int64{1}, Room: 2}, {Price: 2, Allocatable: []int64{2}, Room: 2}, {Price: 3, Allocatable: []int64{2}, Room: 2},
	}
	classes := []mix.Class{{Pods: 4, Request: []int64{1}, Takes: []int{0, 1, 2}}, {Pods: 2, Request: []int64{2}, Takes: []int{1, 2}}}
	large, small := []mix.Count{{Class: 1, Pods: 1}}, []mix.Count{{Class: 0, Pods: 1}}
	nodes, work := mix.Exchange(classes, groups, []mix.Batch{{Group: 2, Nodes: 2, Pods: large}, {Group: 1, Nodes: 2, Pods: small}})
	cost := 0.0
	for _, n := range nodes {
		cost += float64(n.Nodes) * groups[n.Group].Price
	}
	if cost != 2*1+2*2 {
		t.Errorf("the nodes cost %v, want 6: %v", cost, nodes)
	}
	if work == 0 {
		t.Error("no work is counted")
	}
}
