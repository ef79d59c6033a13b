package planner_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/autoscaler/planner"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
	"pgregory.net/rapid"
)

func follow(t rapid.TB, primary *cluster.State) *planner.Planner {
	t.Helper()
	return followWith(t, primary, nil)
}

func followWith(t rapid.TB, primary *cluster.State, chain expander.Chain) *planner.Planner {
	t.Helper()
	profiles := []*framework.Profile{plugins.Default(primary.Schema, plugins.Options{})}
	p, err := planner.New(primary, profiles, engine.Options{}, chain)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func addNode(s *cluster.State, name string) {
	s.SetNode(s.Schema.ParseNode(testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi").Obj(), "g"))
}

func mustCatchUp(t *testing.T, p *planner.Planner) {
	t.Helper()
	if err := p.CatchUp(); err != nil {
		t.Fatal(err)
	}
}

// removals returns the names of the nodes that a plan would remove.
func removals(plan *autoscaler.Plan) string {
	out := []string{}
	for _, r := range plan.Removals {
		out = append(out, r.Node)
	}
	return fmt.Sprint(out)
}

// TestAPlanIsOfTheStateAtItsPosition makes plans while the primary goes on: a plan shows
// the cluster as it was when the planner last caught up, and says where that was and
// which request it answers.
func TestAPlanIsOfTheStateAtItsPosition(t *testing.T) {
	primary := cluster.New(cluster.NewSchema())
	p := follow(t, primary)
	primary.SetGroup("g", &cluster.NodeGroup{ID: "g", Target: 2, Max: 5, Template: primary.Schema.ParseNode(testkit.Node("t").Alloc("cpu", "4", "memory", "8Gi").Obj(), "g")})
	addNode(primary, "n1")
	mustCatchUp(t, p)
	at := primary.Head()
	addNode(primary, "n2")
	for number, want := range map[uint64]string{7: "[n1]", 8: "[n1]"} {
		plan := p.Plan(autoscaler.Request{Number: number, Now: time.Unix(1000, 0), ScaleDown: &autoscaler.ScaleDown{}})
		if plan.Request != number || plan.At != at || !plan.Now.Equal(time.Unix(1000, 0)) || removals(plan) != want {
			t.Errorf("request %d: the plan answers request %d of %s at %d and finds %v empty; want %d, 1000 s, %d, %s",
				number, plan.Request, plan.Now, plan.At, removals(plan), number, at, want)
		}
	}
	mustCatchUp(t, p)
	plan := p.Plan(autoscaler.Request{Now: time.Unix(1000, 0), ScaleDown: &autoscaler.ScaleDown{}})
	if plan.At != primary.Head() || p.Position() != primary.Head() || removals(plan) != "[n1 n2]" {
		t.Errorf("after catching up the plan is made at %d and finds %v empty; want %d, [n1 n2]", plan.At, removals(plan), primary.Head())
	}
}

// TestAPlanHasBothSides orders a node for a pending pod that the request names, and names the
// empty nodes; but for the one that another pending pod fits on.
func TestAPlanHasBothSides(t *testing.T) {
	primary := cluster.New(cluster.NewSchema())
	p := follow(t, primary)
	primary.SetGroup("g", &cluster.NodeGroup{ID: "g", Target: 2, Max: 5, Template: primary.Schema.ParseNode(testkit.Node("t").Alloc("cpu", "4", "memory", "8Gi").Obj(), "g")})
	addNode(primary, "n1")
	primary.SetNode(primary.Schema.ParseNode(testkit.Node("n2").Alloc("cpu", "2", "memory", "8Gi").Obj(), "g"))
	mustCatchUp(t, p)
	pod := primary.Schema.ParsePod(testkit.Pod("p").Req("cpu", "3").Obj())
	full := primary.Schema.ParsePod(testkit.Pod("q").Req("cpu", "3").Obj())
	for range 2 { // a plan leaves nothing behind for the next
		plan := p.Plan(autoscaler.Request{Pending: []*cluster.Pod{full, pod}, ScaleDown: &autoscaler.ScaleDown{}})
		if len(plan.ScaleUps) != 1 || plan.ScaleUps[0].Nodes != 1 || plan.ScaleUps[0].Pods[0] != pod.UID || plan.Covered != 1 || removals(plan) != "[n2]" {
			t.Errorf("the plan is %+v; want a node for p, q on n1, and n2 removed, which has no room for q", plan)
		}
	}
}

// TestOthersHaveTurnsWhilePlansAreMade has a planner buy for pods and move one from a node: others
// have turns on both sides of the plan, and none while the planner catches up, which it does where
// somebody waits for it.
func TestOthersHaveTurnsWhilePlansAreMade(t *testing.T) {
	primary := cluster.New(cluster.NewSchema())
	p := follow(t, primary)
	turns := 0
	p.Yield = func() { turns++ }
	primary.SetGroup("g", &cluster.NodeGroup{ID: "g", Target: 2, Max: 5, Template: primary.Schema.ParseNode(testkit.Node("t").Alloc("cpu", "4", "memory", "8Gi").Obj(), "g")})
	addNode(primary, "n1")
	addNode(primary, "n2")
	primary.Place(primary.Schema.ParsePod(testkit.Pod("moved").Owner("apps/v1", "ReplicaSet", "rs").Req("cpu", "1").Obj()), "n1")
	mustCatchUp(t, p)
	if turns != 0 {
		t.Errorf("others had %d turns while the planner caught up, want none", turns)
	}
	p.Plan(autoscaler.Request{Pending: []*cluster.Pod{primary.Schema.ParsePod(testkit.Pod("p").Req("cpu", "4").Obj())}})
	buying := turns
	if buying == 0 {
		t.Error("others had no turn while the planner looked for nodes to buy")
	}
	if plan := p.Plan(autoscaler.Request{ScaleDown: &autoscaler.ScaleDown{Rules: autoscaler.RemovalRules{UtilizationThreshold: 0.5}}}); len(plan.Removals) == 0 {
		t.Fatalf("the plan removes nothing: %+v", plan)
	}
	if turns == buying {
		t.Error("others had no turn while the planner looked for nodes to remove")
	}
	planned := turns
	addNode(primary, "n3")
	if mustCatchUp(t, p); turns != planned {
		t.Errorf("others had %d turns while the planner caught up again, want none", turns-planned)
	}
}

// TestFollowKeepsUpWithoutAJournal follows a primary that forgets its journal after each
// change, and one that has forgotten too early.
func TestFollowKeepsUpWithoutAJournal(t *testing.T) {
	primary := cluster.New(cluster.NewSchema())
	p := follow(t, primary)
	primary.SetGroup("g", &cluster.NodeGroup{ID: "g", Target: 5, Max: 5, Template: primary.Schema.ParseNode(testkit.Node("t").Alloc("cpu", "4", "memory", "8Gi").Obj(), "g")})
	for _, name := range testkit.Names("n", 5) {
		addNode(primary, name)
		if err := p.Follow(time.Unix(1000, 0)); err != nil {
			t.Fatal(err)
		}
		primary.Trim(p.Position())
	}
	if got := len(p.Plan(autoscaler.Request{ScaleDown: &autoscaler.ScaleDown{}}).Removals); got != 5 {
		t.Errorf("the planner knows of %d nodes, want 5", got)
	}
	addNode(primary, "late")
	primary.Trim(primary.Head())
	if err := p.Follow(time.Unix(1000, 0)); !errors.Is(err, cluster.ErrBehind) {
		t.Errorf("following a primary that has forgotten: %v, want %v", err, cluster.ErrBehind)
	}
	if err := p.CatchUp(); !errors.Is(err, cluster.ErrBehind) {
		t.Errorf("catching up with a primary that has forgotten: %v, want %v", err, cluster.ErrBehind)
	}
}
