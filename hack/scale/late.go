package main

import (
	"context"
	"fmt"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file measures one list of the provider's in which all that was ordered last is late, as after a
// bad image: the core places no pod while it takes the list in.

const (
	lateGroups    = 300
	lateInstances = 3000
)

// measureLate measures the one Step. It is an error unless each late instance is asked to be deleted
// in it: that is what such a list should cause.
func measureLate(_ context.Context, t task, m *meter) error {
	schema := cluster.NewSchema()
	cfg := core.DefaultConfig(plugins.Default(schema, plugins.Options{}))
	a := core.DefaultAutoscale()
	cfg.Autoscale = &a
	c, err := core.New(schema, cfg)
	if err != nil {
		return err
	}
	now := time.Unix(1000, 0)
	groups := make([]nodegroup.Group, lateGroups)
	for i := range groups {
		groups[i] = nodegroup.Group{ID: fmt.Sprint("g", i), Max: t.Nodes + lateInstances, Template: testkit.Node("t").Obj()}
	}
	var in []step.Input
	add := func(g *nodegroup.Group, name string) {
		g.Instances = append(g.Instances, nodegroup.Instance{ID: "cloud://" + name, Node: name})
		g.Target++
	}
	for i := range t.Nodes {
		g := &groups[i%lateGroups]
		n := testkit.Node(fmt.Sprint("n", i)).Obj()
		n.Spec.ProviderID = "cloud://" + n.Name
		in = append(in, step.NodeSet{Node: n, Group: g.ID})
		add(g, n.Name)
	}
	for i := range lateInstances {
		add(&groups[i%lateGroups], fmt.Sprint("late", i))
	}
	c.Step(now, door.Must(append(in, step.GroupsSet{Groups: groups})...)...)
	now = now.Add(a.MaxProvisionTime)
	late := 0
	m.figures["late step"] = m.time(func() {
		late = len(c.Step(now, door.Must(step.GroupsSet{Groups: groups})...).NodeDeletions)
	})
	if late != lateInstances {
		return fmt.Errorf("%d instances are late, want %d", late, lateInstances)
	}
	return nil
}
