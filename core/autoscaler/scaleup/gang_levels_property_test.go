package scaleup

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// levelWorld is a plan for one gang that requires some topologies, with the number of its members, of one CPU each,
// that each domain could hold, as it is counted: the values of the labels are joined by a slash.
type levelWorld struct {
	p      *Packer
	req    autoscaler.Request
	labels []string
	holds  map[string]int
	of     map[string]string // the domain of a node, or of a group's new nodes; "" for none
}

func drawLevelWorld(rt *rapid.T) *levelWorld {
	p, req := adversarial(rt, sizes{})
	x := &levelWorld{p: p, req: req, holds: map[string]int{}, of: map[string]string{},
		labels: rapid.SampledFrom([][]string{{"block", "rack"}, {"zone", "block", "rack"}, {"rack"}, {"block"}}).Draw(rt, "labels")}
	draw := func(name string) *testkit.NodeBuilder {
		cpu := rapid.IntRange(1, 4).Draw(rt, "cpu")
		b := testkit.Node(name).Alloc("cpu", fmt.Sprint(cpu), "memory", "64Gi", "pods", "110")
		for _, label := range []string{"zone", "block", "rack"} {
			if value := rapid.IntRange(0, 8).Draw(rt, label); value > 0 { // a ninth lack it
				b.Labels[label] = fmt.Sprint(value % 2)
			}
		}
		var values []string
		for _, label := range x.labels {
			if value, has := b.Labels[label]; has {
				values = append(values, value)
			}
		}
		if len(values) == len(x.labels) {
			x.of[name] = strings.Join(values, "/")
		}
		return b
	}
	for i := range rapid.IntRange(0, 4).Draw(rt, "nodes") {
		n := p.State.Schema.ParseNode(draw(fmt.Sprint("n", i)).Obj(), "")
		p.State.SetNode(n)
		x.holds[x.of[n.Name]] += int(n.Allocatable.At(cluster.CPU) / 1000)
	}
	for i := range rapid.IntRange(0, 4).Draw(rt, "groups") {
		id, most := fmt.Sprint("g", i), rapid.IntRange(0, 3).Draw(rt, "max")
		g := &cluster.NodeGroup{ID: id, Max: most, Price: float64(i + 1), Template: p.State.Schema.ParseNode(draw(id).Obj(), id)}
		p.State.SetGroup(id, g)
		x.holds[x.of[id]] += most * int(g.Template.Allocatable.At(cluster.CPU)/1000)
	}
	delete(x.holds, "")
	members := rapid.IntRange(1, 8).Draw(rt, "members")
	g := autoscaler.Gang{Key: cluster.PodGroupKey{Namespace: "default", Name: "gang"}, MinCount: rapid.IntRange(1, members).Draw(rt, "min"), Topologies: x.labels}
	object := testkit.PodGroup("gang", g.MinCount, x.labels[len(x.labels)-1])
	if len(x.labels) > 1 {
		object.Annotations = map[string]string{cluster.TopologyLevelsAnnotation: strings.Join(x.labels, "=required,") + "=required"}
	}
	p.State.SetObject(object)
	for i := range members {
		g.Members = append(g.Members, p.State.Schema.ParsePod(testkit.Pod(fmt.Sprint("m", i)).Req("cpu", "1").PodGroup("gang").Obj()))
	}
	x.req.Gangs = []autoscaler.Gang{g}
	return x
}

// TestPropertyGangsAreInOneDomainOfAllLevels plans for gangs that require up to three topologies, whose values repeat
// in others: it has places exactly when one domain of all of them could hold enough members, as counting says, and all that
// it joins, fits on and buys is in one.
func TestPropertyGangsAreInOneDomainOfAllLevels(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := drawLevelWorld(rt)
		most := 0
		for _, n := range x.holds {
			most = max(most, n)
		}
		gang := &x.req.Gangs[0]
		plan := autoscaler.NewPlan(&x.req, 0)
		x.p.Plan(x.req, plan)
		out := plan.Gangs[0]
		if placed := out.Placed >= gang.MinCount; placed != (most >= gang.MinCount) || !placed && out.Placed > 0 {
			rt.Fatalf("%d of %d members have places, %d are needed and domains hold %v", out.Placed, len(gang.Members), gang.MinCount, x.holds)
		}
		if out.Placed > x.holds[out.Domain] {
			rt.Fatalf("%d members are to be in domain %q, which holds %d", out.Placed, out.Domain, x.holds[out.Domain])
		}
		for _, f := range plan.Fitting {
			if x.of[f.Node] != out.Domain {
				rt.Fatalf("a member fits on node %s of domain %q, and the others are in %q", f.Node, x.of[f.Node], out.Domain)
			}
		}
		for i := range plan.ScaleUps {
			if up := &plan.ScaleUps[i]; x.of[up.Group] != out.Domain {
				rt.Fatalf("nodes of group %s are bought, of domain %q, and the others are in %q", up.Group, x.of[up.Group], out.Domain)
			}
		}
		if out.Placed == 0 && len(plan.ScaleUps) > 0 {
			rt.Fatalf("nodes are bought for nobody")
		}
	})
}
