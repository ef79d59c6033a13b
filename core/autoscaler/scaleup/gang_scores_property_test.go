package scaleup

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/internal/test/testkit"
)

// scoredRack is a rack's nodes, by the CPUs of each, and how many CPUs of them are taken.
type scoredRack struct{ cpus, taken []int }

// planInRacks plans for a gang in a cluster of some racks, and returns the answer and the score of how full a
// rack would be with the first of its members.
func planInRacks(t *rapid.T, racks map[string]scoredRack, requests []int, need int) (autoscaler.GangPlan, func(rack string, members int) int64) {
	p, req := adversarial(t, sizes{})
	nodes := map[string][]cluster.NodeIndex{}
	for name, rack := range racks {
		for i, cpu := range rack.cpus {
			node := fmt.Sprint(name, i)
			b := testkit.Node(node).Alloc("cpu", fmt.Sprint(cpu), "memory", "64Gi", "pods", "110")
			b.Labels["rack"] = name
			nodes[name] = append(nodes[name], p.State.SetNode(p.State.Schema.ParseNode(b.Obj(), "")))
			if rack.taken[i] > 0 {
				p.State.Place(p.State.Schema.ParsePod(testkit.Pod("on-"+node).Req("cpu", fmt.Sprint(rack.taken[i])).Obj()), node)
			}
		}
	}
	p.State.SetObject(testkit.PodGroup("gang", need, "rack"))
	g := autoscaler.Gang{Key: cluster.PodGroupKey{Namespace: "default", Name: "gang"}, MinCount: need, Topologies: []string{"rack"}}
	for i, cpu := range requests {
		g.Members = append(g.Members, p.State.Schema.ParsePod(testkit.Pod(fmt.Sprint("m", i)).Req("cpu", fmt.Sprint(cpu)).PodGroup("gang").Obj()))
	}
	req.Gangs = []autoscaler.Gang{g}
	plan := autoscaler.NewPlan(&req, 0)
	p.Plan(req, plan)
	return plan.Gangs[0], func(rack string, members int) int64 {
		return p.Engine(g.Members[0]).Profile().PlacementScorer().Placement(g.Members[:members]).ScoreNodes(p.State, nodes[rack])
	}
}

// TestPropertyPlansTakeTheBestRack plans for gangs that nodes have room for which are there. The rack they are to be
// in has the best placement score of all in which enough members find places when it is the only one. Members
// are alike, so that it doesn't matter which of them find places.
func TestPropertyPlansTakeTheBestRack(t *testing.T) {
	compared, partly := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		racks := map[string]scoredRack{}
		for _, name := range []string{"a", "b", "c", "d"}[:rapid.IntRange(2, 4).Draw(rt, "racks")] {
			var x scoredRack
			for range rapid.IntRange(1, 3).Draw(rt, "nodes") {
				cpu := rapid.IntRange(1, 6).Draw(rt, "cpu")
				x.cpus, x.taken = append(x.cpus, cpu), append(x.taken, rapid.IntRange(0, cpu).Draw(rt, "taken"))
			}
			racks[name] = x
		}
		requests := make([]int, rapid.IntRange(1, 6).Draw(rt, "members"))
		cpu := rapid.IntRange(1, 3).Draw(rt, "requests")
		for i := range requests {
			requests[i] = cpu
		}
		need := rapid.IntRange(1, len(requests)).Draw(rt, "minCount")
		holds, most := map[string]int{}, 0
		for name, x := range racks {
			if out, _ := planInRacks(rt, map[string]scoredRack{name: x}, requests, need); out.Placed > 0 {
				holds[name] = out.Placed
				most = max(most, out.Placed)
			}
		}
		out, fill := planInRacks(rt, racks, requests, need)
		if out.Placed != holds[out.Domain] {
			rt.Fatalf("%d members are to be in rack %q, and by themselves racks hold %v", out.Placed, out.Domain, holds)
		}
		if len(holds) == 0 {
			return
		}
		score := func(rack string) int64 { return framework.PlacementScore(holds[rack], most, fill(rack, holds[rack])) }
		for name := range holds {
			if score(name) > score(out.Domain) {
				rt.Fatalf("the gang is to be in rack %s (score %d), and that of %s is %d; members that racks hold: %v", out.Domain, score(out.Domain), name, score(name), holds)
			}
		}
		if len(holds) > 1 {
			compared++
		}
		if out.Placed < len(requests) {
			partly++
		}
	})
	if compared == 0 || partly == 0 {
		t.Errorf("%d gangs had more than one rack to be in, and %d only room for some members", compared, partly)
	}
}
