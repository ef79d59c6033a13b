package main

import (
	"context"
	"fmt"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/autoscaler/planner"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file measures plans of sizes that any user may choose: of classes that no group takes, of
// many classes and groups by cost, and of tenants with a group each.

// adversarialPlan is a plan to be measured: groups × classes is what makes it dear, and each class has
// three pods, so that placing them costs little beside.
type adversarialPlan struct {
	// figure is the key in parts.
	figure string
	// daemons is how many DaemonSets every new node of any group has a pod of.
	groups, classes, daemons int
	// chain is the expander; nil for the default one.
	chain    expander.Chain
	pod      func(class int) *testkit.PodBuilder
	unplaced int // how many pods no group takes
}

// measureAdversary takes the time of one plan of each kind, by a planner that has made none before.
func measureAdversary(ctx context.Context, t task, m *meter) error {
	selecting := func(tenant string) *testkit.PodBuilder {
		return testkit.Pod("").Req("cpu", "1").Select("tenant", tenant)
	}
	refused := min(t.Nodes, 20_000)
	tenants := max(1, min(t.Nodes/12, 1600))
	for _, x := range []adversarialPlan{
		{"adversary refused", 100, refused, 20, nil, func(i int) *testkit.PodBuilder { return selecting(fmt.Sprint("none-", i)) }, refused},
		{"adversary cost", 300, max(1, min(t.Nodes/5, 2000)), 0, expander.Chain{expander.Cost{}, expander.LeastWaste{}}, func(i int) *testkit.PodBuilder {
			return testkit.Pod("").Req("cpu", fmt.Sprintf("%dm", 100+i*7%1900), "memory", fmt.Sprintf("%dMi", 128+i*37%6000))
		}, 0},
		{"adversary tenants", tenants, tenants, 0, nil, func(i int) *testkit.PodBuilder { return selecting(fmt.Sprint(i)) }, 0},
	} {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := x.measure(m); err != nil {
			return fmt.Errorf("%s: %w", x.figure, err)
		}
	}
	return nil
}

// measure makes the plan. It is an error when another number of pods than expected has no node in
// it, or when it doesn't say why. Groups differ in size, price and tenant label in periods that have
// no common divisor, so that few of them are similar.
func (x *adversarialPlan) measure(m *meter) error {
	schema := cluster.NewSchema()
	leader := cluster.New(schema)
	for i := range x.groups {
		cores := 4 << (i % 5)
		t := testkit.Node(fmt.Sprintf("g%04d", i)).Alloc("cpu", fmt.Sprint(cores), "memory", fmt.Sprintf("%dGi", cores*(2+i%7)), "pods", "110")
		t.Label("tenant", fmt.Sprint(i))
		leader.SetGroup(t.Name, &cluster.NodeGroup{ID: t.Name, Max: 1000, Price: 0.03*float64(cores) + 0.01*float64(1+i%11), Template: schema.ParseNode(t.Obj(), t.Name)})
	}
	for i := range x.daemons {
		t := testkit.Pod(fmt.Sprint("agent-", i)).Req("cpu", "10m").Owner("apps/v1", "DaemonSet", fmt.Sprint("agent-", i))
		leader.SetWorkload(&cluster.Workload{Kind: cluster.DaemonSet, Namespace: "default", Name: t.Name, Template: schema.ParsePod(t.Obj())})
	}
	const each = 3
	var pending []*cluster.Pod
	for i := range x.classes * each {
		b := x.pod(i / each)
		b.Name = fmt.Sprint("p", i)
		b.UID = ""
		p := testkit.Pod(b.Name)
		p.Labels, p.Spec = b.Labels, b.Spec
		pending = append(pending, schema.ParsePod(p.Obj()))
	}
	p, err := planner.New(leader, profiles(schema), engine.Options{}, x.chain)
	if err != nil {
		return err
	}
	if err := p.CatchUp(); err != nil {
		return err
	}
	now := time.Unix(1000, 0)
	var plan *autoscaler.Plan
	m.figures[x.figure] = m.time(func() {
		plan = p.Plan(autoscaler.Request{Number: 1, Now: now, ServerNow: now, Pending: pending})
	})
	said := 0
	for _, n := range plan.NoHelp {
		said += len(n.Pods)
	}
	if want := x.unplaced * each; said != want {
		return fmt.Errorf("the plan says of %d pods why no group helps, want %d", said, want)
	}
	return nil
}
