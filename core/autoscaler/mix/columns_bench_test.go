package mix_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler/mix"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// BenchmarkColumnsAlone compares Solve with column generation alone, case by case: what the
// purchases cost, and the proved bounds, as parts of what any purchase costs at least by the whole
// relaxation; and millions of multiplications. docs/measurements/mix.md has a run.
func BenchmarkColumnsAlone(b *testing.B) {
	classes, groups := openbInstance(b)
	compare(b, "openb", instance{classes, groups})
	compare(b, "a million pods", millionPods(b))
	for _, size := range []struct{ classes, groups int }{{200, 300}, {1000, 300}, {5000, 100}} {
		classes, groups := manyShapes(size.classes, size.groups)
		compare(b, fmt.Sprintf("%d classes, %d groups", size.classes, size.groups), instance{classes, groups})
	}
	compare(b, "400 tenants", tenants(400))
	compare(b, "1000 random ones", drawn(1000)...)
}

// compare solves instances in both ways.
func compare(b *testing.B, name string, all ...instance) {
	least := 0.0
	for _, x := range all {
		least += mix.SolveWhole(x.classes, x.groups).LowerBound
	}
	for _, way := range []struct {
		name  string
		solve func([]mix.Class, []mix.Group) mix.Solution
	}{{"both", mix.Solve}, {"columns", mix.SolveByColumns}} {
		b.Run(name+"/"+way.name, func(b *testing.B) {
			var price, bound, work float64
			for b.Loop() {
				price, bound, work = 0, 0, 0
				for _, x := range all {
					s := way.solve(x.classes, x.groups)
					price, bound, work = price+s.Price, bound+s.LowerBound, work+float64(s.Work)
				}
			}
			b.ReportMetric(price/least, "price")
			b.ReportMetric(bound/least, "bound")
			b.ReportMetric(work/1e6, "Mmul")
		})
	}
}

// millionPods are the pods and groups of BenchmarkPlanMillion, without those pods that aren't
// countable.
func millionPods(b *testing.B) instance {
	schema := cluster.NewSchema()
	e, err := engine.New(cluster.New(schema), plugins.Default(schema, plugins.Options{}), engine.Options{})
	if err != nil {
		b.Fatal(err)
	}
	groups := testkit.BurstGroups(schema)
	resources := []cluster.ResourceID{cluster.CPU, cluster.Memory}
	for id := range groups[len(groups)-1].Template.Allocatable.All() {
		if id.Scalar() {
			resources = append(resources, id)
		}
	}
	quantities := func(r *cluster.Resources, pods int64) (out []int64) {
		for _, id := range resources {
			out = append(out, r.At(id))
		}
		return append(out, pods)
	}
	var x instance
	var nodes []*cluster.Node
	for _, g := range groups {
		n := cluster.DetachedNode(g.Template)
		nodes = append(nodes, n)
		x.groups = append(x.groups, mix.Group{Price: g.Price, Room: g.Max, Allocatable: quantities(&n.Allocatable, n.AllowedPods)})
	}
	for _, pod := range testkit.BurstPods(schema, 1000, 1) {
		if class := e.Class(pod); e.Countable(class) {
			c := mix.Class{Pods: 1000, Request: quantities(&pod.Request, 1)}
			for j, n := range nodes {
				if e.Count(class, n) > 0 {
					c.Takes = append(c.Takes, j)
				}
			}
			if pod.Object.Spec.Affinity != nil && pod.Object.Spec.Affinity.PodAntiAffinity != nil {
				c.PerNode = 1
			}
			x.classes = append(x.classes, c)
		}
	}
	return x
}

// drawn are so many instances of the package's properties.
func drawn(n int) (all []instance) {
	g := rapid.Custom(func(t *rapid.T) (x instance) {
		x.classes, x.groups = drawInstance(t, 8, 6, 40)
		return x
	})
	for seed := range n {
		all = append(all, g.Example(seed))
	}
	return all
}
