package main

import (
	"context"
	"fmt"
	"runtime"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file measures placements by the engine alone: pods are parsed and classified beforehand.

// workload returns a case of docs/performance.md, with so many classes.
func workload(name string, classes int) *testkit.PlacementCase {
	for _, c := range testkit.PlacementCases() {
		if c.Name == name {
			c.Classes = classes
			return &c
		}
	}
	panic("the testkit has no case " + name)
}

// oneClass is the case in which all pods are alike, where columns help most.
func oneClass() *testkit.PlacementCase { return workload("plain", 1) }

// manyClasses is the case in which classes take turns, so that no two placements in a row are by the same column.
func manyClasses(t task) *testkit.PlacementCase {
	return workload("500 classes of 8 shapes", t.Classes)
}

// roomy returns what a node has, so that the pods fill some three fifths of their nodes. As all
// of them fit, a placement that finds no node is an error.
func roomy(t task) []string {
	return []string{"cpu", fmt.Sprint(500*t.PodsPerNode+500, "m"), "memory", fmt.Sprint(t.PodsPerNode+4, "Gi"), "pods", "110"}
}

// measureEngine measures placements by one class and by many, and the first pod of a shape, for which
// the engine evaluates every node.
func measureEngine(ctx context.Context, t task, m *meter) error {
	for _, x := range []struct {
		key  string
		pods *testkit.PlacementCase
	}{{"engine one", oneClass()}, {"engine many", manyClasses(t)}} {
		took, err := placements(ctx, t, m, x.pods)
		if err != nil {
			return err
		}
		m.figures[x.key] = took / float64(t.pods()) * 1e6
		runtime.GC()
	}
	return first(t, m)
}

// placements fills the cluster with a case's pods, class by class in turn, and returns the seconds
// that it takes. Columns exist beforehand. The journal is trimmed as the core does between Steps, or
// it would be the memory that is measured.
func placements(ctx context.Context, t task, m *meter, c *testkit.PlacementCase) (seconds float64, err error) {
	state, e, err := engineOf(t, c)
	if err != nil {
		return 0, err
	}
	pods, classes := make([]*cluster.Pod, c.Classes), make([]*engine.Class, c.Classes)
	for k := range classes {
		pods[k] = state.Schema.ParsePod(c.CasePod(k).Obj())
		classes[k] = e.Class(pods[k])
		e.Best(classes[k])
	}
	fresh := make([]cluster.Pod, t.pods())
	for i := range fresh {
		fresh[i] = *pods[i%c.Classes]
		fresh[i].UID = types.UID(fmt.Sprint("u", i))
	}
	seconds = m.time(func() {
		for i := range fresh {
			if _, ok := e.Place(classes[i%c.Classes], &fresh[i]); !ok {
				err = fmt.Errorf("placement %d found no node: %s", i, e.Diagnose(classes[i%c.Classes]).Message())
				return
			}
			if i%4096 == 4095 {
				state.Trim(state.Head() - 4096)
				if err = ctx.Err(); err != nil {
					return
				}
			}
		}
	})
	return seconds, err
}

// engineOf returns an engine with the default plugins on a cluster without pods.
func engineOf(t task, c *testkit.PlacementCase) (*cluster.State, *engine.Engine, error) {
	state := c.State(t.Nodes, roomy(t)...)
	e, err := engine.New(state, plugins.Default(state.Schema, plugins.Options{}), engine.Options{Seed: 1})
	return state, e, err
}

// first measures the choice of a node for pods of new shapes: each needs a column of its own.
func first(t task, m *meter) error {
	const shapes = 20
	c := oneClass()
	state, e, err := engineOf(t, c)
	if err != nil {
		return err
	}
	took := m.time(func() {
		for i := range shapes {
			p := state.Schema.ParsePod(c.CasePod(0).Req("memory", fmt.Sprint(100+i, "Mi")).Obj())
			if _, ok := e.Best(e.Class(p)); !ok {
				err = fmt.Errorf("no node for a pod of a new shape")
				return
			}
		}
	})
	m.figures["engine first"] = took / shapes * 1e3
	return err
}
