package drive_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
)

// autoscaling returns the configuration of a core that scales, too.
func autoscaling(change func(*core.Autoscale)) core.Config {
	cfg, a := core.DefaultConfig(), core.DefaultAutoscale()
	change(&a)
	cfg.Autoscale = &a
	return cfg
}

// newDriver returns a driver of an autoscaling core with the default profile.
func newDriver(t rapid.TB, cfg drive.Config) *drive.Driver {
	t.Helper()
	cfg.Schema = cluster.NewSchema()
	cfg.Core.Profiles = []*framework.Profile{plugins.Default(cfg.Schema, plugins.Options{})}
	if cfg.Inbox == nil {
		cfg.Inbox = func(step.Input) {}
	}
	d, err := drive.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// latePlans keep what computes the plans that were asked for.
type latePlans struct {
	drive.Unanswered
	compute []func() *autoscaler.Plan
}

func (l *latePlans) Plan(compute func() *autoscaler.Plan, _ func(*autoscaler.Plan)) {
	l.compute = append(l.compute, compute)
}

func node(name string) step.Input {
	return step.NodeSet{Node: testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj()}
}

func group() step.Input {
	return step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Max: 5, Template: testkit.Node("t").Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj()}}}
}

// TestAPlanSeesTheClusterAsItWasWhenTheCoreAsked computes a plan after the cluster
// has changed: for a pod that has its node by then, it still buys one.
func TestAPlanSeesTheClusterAsItWasWhenTheCoreAsked(t *testing.T) {
	late := &latePlans{}
	var asked cluster.Seq
	var d *drive.Driver
	hook := drive.HookFunc(func(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
		if r.Plan != nil {
			asked = d.Core().State().Head()
		}
	})
	d = newDriver(t, drive.Config{Core: autoscaling(func(*core.Autoscale) {}), Workers: late, Hooks: []drive.Hook{hook}})
	now := time.Unix(1000, 0)
	inputs := [][]step.Input{
		{group(), step.PodSet{Pod: testkit.Pod("p").Req("cpu", "3").Obj()}},
		{node("late")},
		{},
	}
	for i := range 30 {
		var in []step.Input
		if i < len(inputs) {
			in = inputs[i]
		}
		if _, err := d.Step(now.Add(time.Duration(i)*time.Second), in...); err != nil {
			t.Fatal(err)
		}
	}
	if len(late.compute) != 1 {
		t.Fatalf("%d plans were asked for, want one as long as it isn't delivered", len(late.compute))
	}
	if head := d.Core().State().Head(); head == asked {
		t.Fatalf("nothing has changed since position %d: the test shows nothing", head)
	}
	plan := late.compute[0]()
	if plan.At != asked || len(plan.ScaleUps) != 1 || plan.ScaleUps[0].Nodes != 1 {
		t.Errorf("the plan was made at %d and orders %+v, want one node at %d", plan.At, plan.ScaleUps, asked)
	}
}

// TestHooksSeeEveryStepBeforeItsWorkIsHandedOut follows the order of hooks and work.
func TestHooksSeeEveryStepBeforeItsWorkIsHandedOut(t *testing.T) {
	var log []string
	hook := func(name string) drive.Hook {
		return drive.HookFunc(func(now time.Time, took time.Duration, in []step.Input, r *step.Ready) {
			log = append(log, fmt.Sprintf("%s at %d took %s: %d in, %d binds", name, now.Unix(), took, len(in), len(r.Binds)))
		})
	}
	d := newDriver(t, drive.Config{
		Core: core.DefaultConfig(), Workers: &loggedBinds{log: &log}, Hooks: []drive.Hook{hook("first"), hook("second")},
		Clock: func() time.Time { return time.Unix(1005, 0) },
	})
	for at := int64(1000); at < 1002; at++ {
		var in []step.Input
		if at == 1000 {
			in = []step.Input{node("n"), step.PodSet{Pod: testkit.Pod("p").Obj()}}
		}
		if _, err := d.Step(time.Unix(at, 0), in...); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"first at 1000 took 5s: 2 in, 1 binds", "second at 1000 took 5s: 2 in, 1 binds", "bind p",
		"first at 1001 took 4s: 0 in, 0 binds", "second at 1001 took 4s: 0 in, 0 binds",
	}
	if !slices.Equal(log, want) {
		t.Errorf("got %q, want %q", log, want)
	}
}

type loggedBinds struct {
	drive.Unanswered
	log *[]string
}

func (l *loggedBinds) Bind(b step.Bind, _ func(error)) { *l.log = append(*l.log, "bind "+b.Name) }

// TestStandingByKeepsThePlannerUpAndTheJournalShort stands by through more changes
// than a core keeps: nothing is handed out or shown, the journal is forgotten, and
// the leader can have a plan made at once.
func TestStandingByKeepsThePlannerUpAndTheJournalShort(t *testing.T) {
	late := &latePlans{}
	steps := 0
	d := newDriver(t, drive.Config{
		Core: autoscaling(func(*core.Autoscale) {}), Workers: late,
		Hooks: []drive.Hook{drive.HookFunc(func(time.Time, time.Duration, []step.Input, *step.Ready) { steps++ })},
	})
	now := time.Unix(1000, 0)
	standBy := func(in ...step.Input) {
		t.Helper()
		if err := d.StandBy(now, in...); err != nil {
			t.Fatal(err)
		}
	}
	standBy(group())
	for i := range 40_000 {
		n := testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Label("version", fmt.Sprint(i)).Obj()
		standBy(step.NodeSet{Node: n})
	}
	if _, ok := d.Core().State().Since(0); ok {
		t.Error("the journal reaches back to the beginning")
	}
	if steps > 0 || len(late.compute) > 0 {
		t.Errorf("%d Steps were shown and %d plans asked for while standing by", steps, len(late.compute))
	}
	d.BecomeLeader(now)
	if _, err := d.Step(now, step.PodSet{Pod: testkit.Pod("p").Req("cpu", "5").Obj()}); err != nil {
		t.Fatal(err)
	}
	if steps != 1 || len(late.compute) != 1 {
		t.Fatalf("%d Steps were shown and %d plans asked for by the leader, want one of each", steps, len(late.compute))
	}
	if plan := late.compute[0](); plan.At != d.Core().State().Head() {
		t.Errorf("the plan was made at %d, the core is at %d", plan.At, d.Core().State().Head())
	}
}
