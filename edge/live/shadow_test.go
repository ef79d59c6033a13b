package live

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/internal/test/testkit"
)

// fullGroup is a provider with a group that has one node and could have more. It counts what
// would change it.
type fullGroup struct{ countingProvider }

func (*fullGroup) Groups(context.Context) ([]nodegroup.Group, error) {
	return []nodegroup.Group{{ID: "g", Max: 3, Target: 1, Price: 1, Template: testkit.Node("t").Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj(),
		Instances: []nodegroup.Instance{{ID: "n", Node: "n"}}}}, nil
}

func (*fullGroup) GroupOf(*v1.Node) string { return "g" }

// TestAShadowReadsGroupsAndMakesPlans: a pod waits for a node that Berth would buy. Nothing is
// asked of the provider but its groups, and nothing written.
func TestAShadowReadsGroupsAndMakesPlans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, p := newInstance(), &fullGroup{}
		if err := i.client.Tracker().Add(testkit.Pod("large").Req("cpu", "4").Obj()); err != nil {
			t.Fatal(err)
		}
		scale, how := core.DefaultAutoscale(), core.DefaultShadow()
		health := NewHealth(true)
		i.start(t, Options{Core: core.Config{Autoscale: &scale, Shadow: &how}, Provider: p, Health: health, StatusName: "status", Namespace: "ns"})
		time.Sleep(time.Minute)
		i.ask(func(c *core.Core) {
			if r := c.ShadowReport(); r == nil || r.Nodes == nil || r.Nodes.Since.IsZero() || r.Nodes.Buying != 1 {
				t.Errorf("the report is %+v; want one node to be wished for", r)
			}
		})
		for _, name := range health.Caches() {
			if err := health.Cache(name); err != nil {
				t.Errorf("the cache of %s: %v", name, err)
			}
		}
		i.stop()
		if err := <-i.ended; err != nil {
			t.Error(err)
		}
		for _, a := range i.client.Actions() {
			if verb := a.GetVerb(); verb != "list" && verb != "watch" && verb != "get" {
				t.Errorf("the shadow did %s of %s", verb, a.GetResource().Resource)
			}
		}
		if p.changes > 0 {
			t.Errorf("the provider was asked for %d changes", p.changes)
		}
	})
}
