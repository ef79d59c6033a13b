package main

import (
	"context"
	"fmt"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/planner"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file measures the two kinds of plans by themselves.

// profiles are what kube-scheduler has without a configuration.
func profiles(s *cluster.Schema) []*framework.Profile {
	return []*framework.Profile{plugins.Default(s, plugins.Options{})}
}

// measureScaleUp takes the time of a plan that buys nodes for all of the task's pods, by a planner
// that has made none before. It is an error when a pod has no node in the plan.
func measureScaleUp(_ context.Context, t task, m *meter) error {
	schema := cluster.NewSchema()
	pending := testkit.BurstPods(schema, t.Classes, t.pods()/t.Classes)
	leader := cluster.New(schema)
	for _, g := range testkit.BurstGroups(schema) {
		leader.SetGroup(g.ID, g)
	}
	p, err := planner.New(leader, profiles(schema), engine.Options{}, nil)
	if err != nil {
		return err
	}
	if err := p.CatchUp(); err != nil {
		return err
	}
	now := time.Unix(1000, 0)
	var plan *autoscaler.Plan
	m.figures["scale-up plan"] = m.time(func() {
		plan = p.Plan(autoscaler.Request{Number: 1, Now: now, ServerNow: now, Pending: pending})
	})
	planned, nodes := plan.Covered, 0
	for _, up := range plan.ScaleUps {
		planned += len(up.Pods)
		nodes += up.Nodes
	}
	if planned != len(pending) {
		return fmt.Errorf("%d of %d pods have a node in the plan", planned, len(pending))
	}
	m.figures["scale-up nodes"] = float64(nodes)
	return nil
}

// measureScaleDown takes the time of the first pass over part-full nodes, which simulates each of
// them, and of those that follow a change of one node in a hundred.
func measureScaleDown(ctx context.Context, t task, m *meter) error {
	c := testkit.PartFull{Nodes: t.Nodes, PerNode: t.PodsPerNode, Owners: t.Classes, Shapes: min(t.Classes, 107)}
	s := c.State()
	simulator, err := scaledown.New(s, profiles(s.Schema), engine.Options{})
	if err != nil {
		return err
	}
	simulator.Follow()
	req := &autoscaler.Request{Now: time.Unix(100000, 0), ServerNow: time.Unix(100000, 0), ScaleDown: &autoscaler.ScaleDown{Rules: autoscaler.RemovalRules{
		UtilizationThreshold: 0.5, GPUUtilizationThreshold: 0.5, SkipSystemPods: true, SkipLocalStorage: true, SkipCustomControllerPods: true, RecheckAfter: 5 * time.Minute}}}
	pass := func() *autoscaler.Plan {
		plan := autoscaler.NewPlan(req, 0)
		simulator.Plan(req, &autoscaler.Questions{}, plan)
		simulator.Forget(req.Now)
		return plan
	}
	var plan *autoscaler.Plan
	m.figures["scale-down first"] = m.time(func() { plan = pass() })
	m.figures["scale-down removable"] = float64(len(plan.Removals))
	const rounds = 5
	took := 0.0
	for round := range rounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range max(1, c.Nodes/100) { // one pod of each is another
			n := (i*97 + round*31) % c.Nodes
			p := s.Schema.ParsePod(c.Pod((n + round%c.PerNode*c.Nodes) % (c.PerNode * c.Nodes)))
			s.Remove(p.UID)
			s.Place(p, c.NodeName(n))
		}
		req.Now = req.Now.Add(10 * time.Second)
		took += m.time(func() { pass() })
	}
	m.figures["scale-down next"] = took / rounds
	return nil
}
