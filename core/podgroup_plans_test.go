package core_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// gangPlans is a core with a gang of three, one member on a node each. Two nodes are ordered, for m0 and m1, and a plan
// is asked for.
type gangPlans struct {
	*planned
	plan *autoscaler.Plan // answers the request, with nothing so far
}

// ofGroup says how many nodes of the node group are ordered, by the provider.
func ofGroup(target int) step.GroupsSet {
	return step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Max: 10, Target: target, Template: testkit.Node("t").Alloc("cpu", "4", "memory", "8Gi").Obj()}}}
}

func newGangPlans(t *testing.T) *gangPlans {
	w := &gangPlans{planned: newPlanned(t, false)}
	in := []step.Input{ofGroup(0), step.ObjectSet{Object: testkit.PodGroup("gang", 3, "")}}
	for _, name := range []string{"m0", "m1", "m2"} {
		in = append(in, step.PodSet{Pod: testkit.Pod(name).Req("cpu", "4").PodGroup("gang").Obj()})
	}
	w.asked(w.c.Step(w.now, door.Must(in...)...))
	w.buys("gang", []types.UID{"pod-m0"}, []types.UID{"pod-m1"}, []types.UID{"pod-m2"})
	w.plan.Gangs = []autoscaler.GangPlan{{Gang: "default/gang", Members: 3, Need: 3, Placed: 3, Nodes: 3}}
	if r := w.c.Step(w.now, door.Must(step.PlanMade{Plan: w.plan})...); len(r.ScaleUps) != 1 || r.ScaleUps[0].Nodes != 3 {
		t.Fatalf("the first plan orders %v, want 3 nodes", r.ScaleUps)
	}
	w.now = w.now.Add(10 * time.Second)
	w.asked(w.c.Step(w.now, door.Must(step.ScaleUpDone{Group: "g", Nodes: 3}, ofGroup(2))...))
	return w
}

// asked keeps a plan that a Step has asked for.
func (w *gangPlans) asked(r step.Ready) {
	w.t.Helper()
	if r.Plan == nil {
		w.t.Fatal("no plan is asked for")
	}
	w.plan = autoscaler.NewPlan(r.Plan, 0)
}

// buys has the plan buy a node for each of some bins.
func (w *gangPlans) buys(gang string, bins ...[]types.UID) {
	w.plan.ScaleUps = append(w.plan.ScaleUps, autoscaler.ScaleUp{Group: "g", Gang: "default/" + gang, Nodes: len(bins), Pods: slices.Concat(bins...), Bins: bins})
}

// commit hands the plan to a Step after other inputs, and returns how many nodes are ordered.
func (w *gangPlans) commit(before ...step.Input) (nodes int) {
	r := w.c.Step(w.now, door.Must(append(before, step.PlanMade{Plan: w.plan})...)...)
	for i := range r.ScaleUps {
		nodes += r.ScaleUps[i].Nodes
	}
	return nodes
}

// TestNodesForAGangNeedItsOtherPlaces buys the third node of a gang, two members of which keep the places that they have.
// Before that is ordered something happens, in the same Step, after which there would be too few.
func TestNodesForAGangNeedItsOtherPlaces(t *testing.T) {
	for _, c := range []struct {
		name   string
		before []step.Input
		want   int
	}{
		{"nothing", nil, 1},
		{"the nodes are still coming", []step.Input{ofGroup(2)}, 1},
		{"one of the nodes comes no more", []step.Input{ofGroup(1)}, 0},
		{"a member with a place is gone", []step.Input{step.PodGone{UID: "pod-m0"}}, 0},
		{"the member without is gone", []step.Input{step.PodGone{UID: "pod-m2"}}, 0},
		{"more members are needed", []step.Input{step.ObjectSet{Object: testkit.PodGroup("gang", 4, "")}}, 0},
		{"the group is gone", []step.Input{step.ObjectGone{Kind: cluster.PodGroupKind, Namespace: "default", Name: "gang"}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newGangPlans(t)
			w.buys("gang", []types.UID{"pod-m2"})
			w.plan.Gangs = []autoscaler.GangPlan{{Gang: "default/gang", Members: 3, Need: 3, Placed: 3, InPlace: []types.UID{"pod-m0", "pod-m1"}, Nodes: 1}}
			if got := w.commit(c.before...); got != c.want {
				t.Errorf("%d nodes are ordered, want %d", got, c.want)
			}
		})
	}
}

// TestAGangJoinsTheNodesThatItHad plans a gang anew, on nodes that were ordered for it before and on one more.
func TestAGangJoinsTheNodesThatItHad(t *testing.T) {
	for _, c := range []struct{ coming, want int }{{2, 1}, {1, 0}} {
		w := newGangPlans(t)
		w.buys("gang", []types.UID{"pod-m1"})
		for _, uid := range []types.UID{"pod-m0", "pod-m2"} {
			w.plan.Joins = append(w.plan.Joins, autoscaler.Join{Group: "g", Pods: []types.UID{uid}, Gang: "default/gang"})
		}
		w.plan.Gangs = []autoscaler.GangPlan{{Gang: "default/gang", Members: 3, Need: 3, Placed: 3, Nodes: 1, Anew: true}}
		if got := w.commit(ofGroup(c.coming)); got != c.want {
			t.Errorf("%d nodes are coming, and %d are ordered, want %d", c.coming, got, c.want)
		}
	}
}

// TestNodesForAGangNeedItsJoins buys a node for one member of another gang, whose other members are to join places of the
// first, or nodes that nobody has a place on.
func TestNodesForAGangNeedItsJoins(t *testing.T) {
	join := func(node string, with types.UID, pods ...types.UID) autoscaler.Join {
		j := autoscaler.Join{Group: "g", Node: node, With: with, Pods: pods, Gang: "default/other"}
		if node != "" {
			j.Group = "" // of no node group
		}
		return j
	}
	alone := func(_, other autoscaler.GangPlan) []autoscaler.GangPlan { return []autoscaler.GangPlan{other} }
	before := func(first, other autoscaler.GangPlan) []autoscaler.GangPlan {
		return []autoscaler.GangPlan{first, other}
	}
	after := func(first, other autoscaler.GangPlan) []autoscaler.GangPlan {
		return []autoscaler.GangPlan{other, first}
	}
	stays := func(first, other autoscaler.GangPlan) []autoscaler.GangPlan {
		first.Placed = 2 // of three that it needs: what is planned anew isn't carried out
		return []autoscaler.GangPlan{first, other}
	}
	for _, c := range []struct {
		name   string
		joins  []autoscaler.Join
		before []step.Input
		gangs  func(first, other autoscaler.GangPlan) []autoscaler.GangPlan // of the plan, in order
		want   int
	}{
		{"a place", []autoscaler.Join{join("", "pod-m0", "pod-o0", "pod-o1")}, nil, alone, 1},
		{"a place that is freed", []autoscaler.Join{join("", "pod-m1", "pod-o0", "pod-o1")}, []step.Input{ofGroup(1)}, alone, 0},
		{"a place of a gang that is planned anew later", []autoscaler.Join{join("", "pod-m1", "pod-o0", "pod-o1")}, nil, after, 0},
		{"a node that is coming", []autoscaler.Join{join("", "", "pod-o0", "pod-o1")}, []step.Input{ofGroup(3)}, alone, 1},
		{"a node that is coming, one by one", []autoscaler.Join{join("", "", "pod-o0"), join("", "pod-o0", "pod-o1")}, []step.Input{ofGroup(3)}, alone, 1},
		{"a node that comes no more", []autoscaler.Join{join("", "", "pod-o0", "pod-o1")}, nil, alone, 0},
		{"two nodes, one of which comes no more", []autoscaler.Join{join("", "", "pod-o0"), join("", "", "pod-o1")}, []step.Input{ofGroup(3)}, alone, 0},
		{"nodes of a gang that is planned anew", []autoscaler.Join{join("", "", "pod-o0"), join("", "", "pod-o1")}, nil, before, 1},
		{"nodes of a gang that keeps its places", []autoscaler.Join{join("", "", "pod-o0"), join("", "", "pod-o1")}, nil, stays, 0},
		{"a node that is there", []autoscaler.Join{join("n", "", "pod-o0", "pod-o1")}, []step.Input{step.NodeSet{Node: testkit.Node("n").Obj()}}, alone, 1},
		{"a node that is gone", []autoscaler.Join{join("n", "", "pod-o0", "pod-o1")}, nil, alone, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newGangPlans(t)
			w.now = w.now.Add(time.Second)
			in := []step.Input{step.PlanMade{Plan: w.plan}, step.ObjectSet{Object: testkit.PodGroup("other", 3, "")}}
			for _, name := range []string{"o0", "o1", "o2"} {
				in = append(in, step.PodSet{Pod: testkit.Pod(name).Req("cpu", "4").PodGroup("other").Obj()})
			}
			w.asked(w.c.Step(w.now, door.Must(in...)...))
			w.buys("other", []types.UID{"pod-o2"})
			w.plan.Joins = c.joins
			w.plan.Gangs = c.gangs(autoscaler.GangPlan{Gang: "default/gang", Members: 3, Need: 3, Anew: true}, autoscaler.GangPlan{Gang: "default/other", Members: 3, Need: 3, Placed: 3, Nodes: 1})
			if got := w.commit(c.before...); got != c.want {
				t.Errorf("%d nodes are ordered, want %d", got, c.want)
			}
		})
	}
}
