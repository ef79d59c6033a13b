package planner_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyNoPlanBuysBackWhatItGivesUp makes a plan for a random cluster with pods that wait,
// some of which fit on nodes that are nearly empty. Then its removals are carried out: the pods
// of the nodes are at their homes, the nodes are gone, and the waiting pods that fitted are where
// the first plan had them. A plan for the others buys no more nodes than the first did, and has
// a place for no fewer pods.
func TestPropertyNoPlanBuysBackWhatItGivesUp(t *testing.T) {
	given := 0
	rapid.Check(t, func(t *rapid.T) {
		primary := cluster.New(cluster.NewSchema())
		nodes := 1 + testkit.Uniform(t, 8, "nodes")
		primary.SetGroup("g", &cluster.NodeGroup{ID: "g", Target: nodes, Max: 20, Template: primary.Schema.ParseNode(testkit.Node("t").Alloc("cpu", "4", "memory", "8Gi", "pods", "20").Obj(), "g")})
		primary.SetWorkload(cluster.WorkloadOf(testkit.ReplicaSet("web", "app", "web")))
		pod := func(name string) *testkit.PodBuilder {
			p := testkit.Pod(name).Owner("apps/v1", "ReplicaSet", "web").Req("cpu", fmt.Sprintf("%dm", 200+200*testkit.Uniform(t, 16, "cpu")), "memory", "100Mi")
			if testkit.Uniform(t, 5, "apart") == 0 {
				p.Label("app", "apart").Apart(v1.LabelHostname, "app", "apart")
			}
			return p
		}
		for _, name := range testkit.Names("n", nodes) {
			primary.SetNode(primary.Schema.ParseNode(testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi", "pods", "20").Obj(), "g"))
			for k := range testkit.Uniform(t, 3, "pods") {
				primary.Place(primary.Schema.ParsePod(pod(fmt.Sprint(name, "-", k)).Obj()), name)
			}
		}
		var pending []*cluster.Pod
		for i := range testkit.Uniform(t, 5, "pending") {
			pending = append(pending, primary.Schema.ParsePod(pod(fmt.Sprint("waits", i)).Obj()))
		}
		request := autoscaler.Request{Number: 1, Now: time.Unix(1000, 0), ServerNow: time.Unix(1000, 0), Pending: pending,
			ScaleDown: &autoscaler.ScaleDown{Rules: autoscaler.RemovalRules{UtilizationThreshold: 1, GPUUtilizationThreshold: 1}}}
		first := plan(t, primary, request)
		given += len(first.Removals)
		for _, r := range first.Removals {
			for _, h := range r.Homes {
				moved := primary.PodOn(h.Pod)
				primary.Remove(h.Pod)
				primary.Place(moved, h.Node)
			}
		}
		for _, r := range first.Removals {
			primary.RemoveNode(r.Node)
		}
		g := *primary.Group("g")
		g.Target -= len(first.Removals)
		primary.SetGroup("g", &g)
		for _, f := range first.Fitting {
			primary.Place(f.Pod, f.Node)
			if n := primary.NodeByName(f.Node); n == nil || n.Requested.At(cluster.CPU) > n.Allocatable.At(cluster.CPU) {
				t.Fatalf("%s fits on node %s, which goes, or whose room others have their homes in; %s go", f.Pod.Name(), f.Node, removals(first))
			}
			request.Pending = slices.DeleteFunc(slices.Clone(request.Pending), func(p *cluster.Pod) bool { return p == f.Pod })
		}
		second := plan(t, primary, request)
		if bought(second) > bought(first) || unplaced(second) > unplaced(first) {
			t.Fatalf("of %d nodes %s go; before, %d are bought and %d pods have no place; after, %d and %d",
				nodes, removals(first), bought(first), unplaced(first), bought(second), unplaced(second))
		}
	})
	if given == 0 {
		t.Error("no plan has given up a node")
	}
}

// plan returns the plan of a planner that has just begun to follow.
func plan(t *rapid.T, primary *cluster.State, req autoscaler.Request) *autoscaler.Plan {
	p := follow(t, primary)
	if err := p.CatchUp(); err != nil {
		t.Fatal(err)
	}
	return p.Plan(req)
}

func bought(plan *autoscaler.Plan) (nodes int) {
	for _, up := range plan.ScaleUps {
		nodes += up.Nodes
	}
	return nodes
}

func unplaced(plan *autoscaler.Plan) (pods int) {
	for _, x := range plan.NoHelp {
		pods += len(x.Pods)
	}
	return pods
}
