package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/testkit"
)

// TestBesideAnotherScheduler follows the autoscaler alone: it writes nothing of
// placements, counts the room that pods are expected to take once, and asks for
// nodes for those that the other has called unschedulable.
func TestBesideAnotherScheduler(t *testing.T) {
	schema := cluster.NewSchema()
	cfg := autoscaling(func(a *core.Autoscale) { a.ScanInterval = 10 * time.Second })
	cfg.Profiles = []*framework.Profile{plugins.Default(schema, plugins.Options{})}
	cfg.ExternalScheduler = true
	c, err := core.New(schema, cfg)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0)
	var plan *autoscaler.Request
	ledger := ""
	advance := func(wait time.Duration, in ...step.Input) {
		t.Helper()
		now = now.Add(wait)
		r := c.Step(now, in...)
		for i := range r.Decisions {
			ledger += r.Decisions[i].String() + "\n"
		}
		if n := len(r.Binds) + len(r.Conditions) + len(r.Events) + len(r.Nominations) + len(r.Preemptions) + len(r.Consults); n > 0 {
			t.Errorf("%d things are written of placements: %+v", n, r)
		}
		if plan = r.Plan; plan != nil {
			c.Step(now, step.PlanMade{Plan: autoscaler.NewPlan(plan, 0)})
		}
	}
	pending := func() (out []string) {
		if plan == nil {
			return []string{"no plan"}
		}
		for _, p := range plan.Pending {
			out = append(out, p.Object.Name)
		}
		return out
	}
	expect := func(what string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want %v; ledger:\n%s", what, got, want, ledger)
		}
	}
	on := func(node string) (out []string) {
		for _, p := range c.State().NodeByName(node).Pods {
			out = append(out, p.Object.Name)
		}
		return out
	}
	refused := func(p *v1.Pod) *v1.Pod {
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable}}
		return p
	}
	cpu := func(name string, priority int32) *testkit.PodBuilder {
		return testkit.Pod(name).Req("cpu", "2").Priority(priority)
	}
	advance(0, step.GroupsSet{}, step.NodeSet{Node: testkit.Node("n").Alloc("cpu", "2", "memory", "8Gi", "pods", "10").Obj()},
		step.PodSet{Pod: cpu("a", 0).Obj()}, step.PodSet{Pod: cpu("b", 0).Obj()}, step.PodSet{Pod: cpu("gated", 0).Gate("example.com/wait").Obj()})
	expect("expected", on("n"), "[a]")
	expect("one asks for a node, but hasn't been refused yet", pending(), "[]")

	advance(10*time.Second, step.PodSet{Pod: refused(cpu("b", 0).Obj())})
	expect("now it has", pending(), "[b]")

	// The other scheduler sees it differently: it has b on the node, and refuses a.
	advance(time.Second, step.PodSet{Pod: cpu("b", 0).On("n").Obj()}, step.PodSet{Pod: refused(cpu("a", 0).Obj())})
	expect("both are taken to be there until the next plan", on("n"), "[a b]")
	advance(9 * time.Second)
	expect("then a isn't", on("n"), "[b]")
	expect("and asks for a node", pending(), "[a]")

	// A pod of higher priority doesn't preempt here, and a nomination is the other's.
	important := cpu("c", 10).Obj()
	important.Status.NominatedNodeName = "n"
	advance(10*time.Second, step.PodSet{Pod: refused(important)})
	expect("a nominated pod has a node to come to", pending(), "[a]")
	advance(10*time.Second, step.PodGone{UID: "pod-b"})
	expect("which it is expected to get", on("n"), "[c]")

	advance(10*time.Second, step.NodeGone{Name: "n"})
	advance(10 * time.Second)
	expect("without the node all ask", pending(), "[c a]")
	if strings.Contains(ledger, "Placed") || !strings.Contains(ledger, "Expected pod default/c node n") {
		t.Errorf("the ledger:\n%s", ledger)
	}
}
