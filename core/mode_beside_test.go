package core_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
)

// emptyPlans answers each request for a plan with a plan that orders nothing.
type emptyPlans struct {
	drive.Unanswered
	request *autoscaler.Request // the last one
}

// remember is a drive.HookFunc: it keeps the request of a Step, which Plan answers next.
func (e *emptyPlans) remember(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
	if r.Plan != nil {
		e.request = r.Plan
	}
}

// Plan implements drive.Workers.
func (e *emptyPlans) Plan(_ func() *autoscaler.Plan, done func(*autoscaler.Plan)) {
	done(autoscaler.NewPlan(e.request, 0))
}

// TestForWhichSchedulersNodesAreBought has a pod of each of three schedulers, none of which has
// been called unschedulable.
func TestForWhichSchedulersNodesAreBought(t *testing.T) {
	for _, c := range []struct {
		name              string
		external          bool
		allowed, bypassed []string
		want              []string
	}{
		{"beside another scheduler, none is bypassed", true, nil, nil, nil},
		{"one is bypassed", true, nil, []string{"b"}, []string{"b"}},
		{"others are allowed, too", true, []string{"a", "b"}, []string{"b"}, []string{"b"}},
		{"Berth decides itself", false, nil, nil, []string{"a", "b", "c"}},
		{"Berth decides itself, and buys for some", false, []string{"a", "c"}, []string{"a"}, []string{"a", "c"}},
	} {
		cfg := autoscaling(func(a *core.Autoscale) { a.AllowedSchedulers, a.BypassedSchedulers = c.allowed, c.bypassed })
		cfg.ExternalScheduler = c.external
		var got []string
		for _, name := range []string{"a", "b", "c"} {
			plans := &emptyPlans{}
			profile := func(schema *cluster.Schema) *framework.Profile {
				return plugins.Default(schema, plugins.Options{SchedulerName: name})
			}
			d := newDriven(t, cfg, plans, profile, drive.HookFunc(plans.remember))
			p := testkit.Pod(name).Obj()
			p.Spec.SchedulerName = name
			d.stepOut(time.Unix(1000, 0), step.GroupsSet{}, step.PodSet{Pod: p})
			if plans.request != nil && len(plans.request.Pending) > 0 {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: nodes are wanted for %v, want %v", c.name, got, c.want)
		}
	}
}

// TestAForeignExpectationIsHonoured has another scheduler say where a pod will be, before it binds
// the pod (KEP-5278): the pod counts there at once, whatever was expected, and stays there in the
// plan that follows, so that its node isn't taken for empty.
func TestAForeignExpectationIsHonoured(t *testing.T) {
	cfg := autoscaling(func(a *core.Autoscale) { a.ScanInterval = 10 * time.Second })
	cfg.ExternalScheduler = true
	plans := &emptyPlans{}
	d := newDriven(t, cfg, plans, defaults, drive.HookFunc(plans.remember))
	now := time.Unix(1000, 0)
	on := func(pod string) string {
		if n := d.Core().State().NodeOf(testkit.Pod(pod).UID); n != nil {
			return n.Name
		}
		return ""
	}
	pod := func(node string) step.Input {
		p := testkit.Pod("p").Req("cpu", "1").Obj()
		p.Status.NominatedNodeName = node
		return step.PodSet{Pod: p}
	}
	node := func(name string) step.Input {
		return step.NodeSet{Node: testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj()}
	}
	d.stepOut(now, step.GroupsSet{}, node("n1"), node("n2"), pod(""))
	first := on("p")
	other := map[string]string{"n1": "n2", "n2": "n1"}[first]
	if other == "" {
		t.Fatalf("the pod is expected on %q, want n1 or n2", first)
	}
	d.stepOut(now, pod(other))
	if on("p") != other {
		t.Errorf("the other scheduler expects the pod on %s, and here it is on %q", other, on("p"))
	}
	now = now.Add(time.Minute)
	d.stepOut(now)
	if on("p") != other {
		t.Errorf("after the next plan the pod is on %q, want %s", on("p"), other)
	}
	d.stepOut(now, pod(first))
	if on("p") != first {
		t.Errorf("the other scheduler expects the pod on %s now, and here it is on %q", first, on("p"))
	}

	// By the rules no node takes it, and yet it will come: it is nominated there, which keeps the node.
	d.stepOut(now, step.NodeGone{Name: "n1"}, step.NodeGone{Name: "n2"},
		step.NodeSet{Node: testkit.Node("full").Alloc("cpu", "500m", "memory", "8Gi", "pods", "10").Obj()}, pod("full"))
	if got := d.Core().State().NominatedTo(testkit.Pod("p").UID); got != "full" {
		t.Errorf("the pod is on %q and nominated to %q, want it to be nominated to full", on("p"), got)
	}
}

// TestBesideAnotherScheduler follows the autoscaler alone: it writes nothing of
// placements, counts the room that pods are expected to take once, and asks for
// nodes for those that the other scheduler has called unschedulable.
func TestBesideAnotherScheduler(t *testing.T) {
	cfg := autoscaling(func(a *core.Autoscale) { a.ScanInterval = 10 * time.Second })
	cfg.ExternalScheduler = true
	ledger := ""
	check := drive.HookFunc(func(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
		for i := range r.Decisions {
			ledger += r.Decisions[i].String() + "\n"
		}
		if n := len(r.Binds) + len(r.Conditions) + len(r.Events) + len(r.Nominations) + len(r.Preemptions) + len(r.Consults); n > 0 {
			t.Errorf("%d things are written of placements: %+v", n, r)
		}
	})
	plans := &emptyPlans{}
	d := newDriven(t, cfg, plans, defaults, drive.HookFunc(plans.remember), check)
	now := time.Unix(1000, 0)
	advance := func(wait time.Duration, in ...step.Input) {
		t.Helper()
		now = now.Add(wait)
		plans.request = nil
		d.stepOut(now, in...)
	}
	pending := func() (out []string) {
		if plans.request == nil {
			return []string{"no plan"}
		}
		for _, p := range plans.request.Pending {
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
		for _, p := range d.Core().State().NodeByName(node).Pods {
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
