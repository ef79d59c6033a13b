package plugins_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/plugins/noderesources"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyManyNodesAreAnsweredForAsOneByOne asks the rules of all plugins that answer for many
// nodes in a row about the nodes of random clusters, some of which are rejected before, and compares
// with their answers for one node at a time.
func TestPropertyManyNodesAreAnsweredForAsOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := cluster.New(cluster.NewSchema())
		w := testkit.NewWorld(s, rapid.IntRange(1, 40).Draw(t, "nodes"))
		w.Furnish(t)
		for range rapid.IntRange(0, 80).Draw(t, "changes") {
			w.Change(t)
		}
		var nodes []*cluster.Node
		s.Nodes(func(n *cluster.Node) { nodes = append(nodes, n) })
		profile := plugins.Default(s.Schema, resourceOptions(t))
		p := s.Schema.ParsePod(w.Pod(t, "subject"))
		for _, x := range profile.Plugins {
			rules, _ := x.Plugin.For(p, s)
			if rule, ok := rules.Local.(framework.ManyNodesRule); ok {
				sameByNode(t, x.Plugin.Name(), rule, nodes)
			}
			if rule, ok := rules.Group.(framework.ManyStaticKeys); ok {
				got := make([]int32, len(nodes))
				for i := range got {
					got[i] = -7 // to be overwritten
				}
				rule.StaticKeys(nodes, got)
				for i, n := range nodes {
					if want := rules.Group.StaticKey(&n.NodeBasics); got[i] != want {
						t.Fatalf("%s: the static key of %s among others is %d, alone %d", x.Plugin.Name(), n.Name, got[i], want)
					}
				}
			}
		}
	})
}

// sameByNode compares EvalNodes with EvalNode.
func sameByNode(t *rapid.T, plugin string, rule framework.ManyNodesRule, nodes []*cluster.Node) {
	weight := rapid.Int32Range(0, 7).Draw(t, "weight")
	before, scores, rejected := make([]bool, len(nodes)), make([]int32, len(nodes)), make([]bool, len(nodes))
	for i := range nodes {
		before[i], scores[i] = testkit.Uniform(t, 4, "rejected before") == 0, int32(i)
	}
	copy(rejected, before)
	rule.EvalNodes(nodes, weight, scores, rejected)
	for i, n := range nodes {
		code, score := rule.EvalNode(n)
		wantRejected, want := before[i] || code != framework.OK, int32(i)+int32(score)*weight
		if rejected[i] != wantRejected || !wantRejected && scores[i] != want {
			t.Fatalf("%s on %s: among others rejected %t and the sum is %d; alone rejected %t and the sum is %d", plugin, n.Name, rejected[i], scores[i], wantRejected, want)
		}
	}
}

// resourceOptions draws what the rules about resources score by.
func resourceOptions(t *rapid.T) plugins.Options {
	lists := [][]noderesources.ResourceWeight{
		nil, nil,
		{{Name: v1.ResourceCPU, Weight: 3}, {Name: v1.ResourceMemory, Weight: 3}},
		{{Name: v1.ResourceCPU, Weight: 1}, {Name: v1.ResourceMemory, Weight: 2}},
		{{Name: v1.ResourceMemory, Weight: 1}, {Name: v1.ResourceCPU, Weight: 1}},
		{{Name: v1.ResourceCPU, Weight: 1}},
		{{Name: v1.ResourceCPU, Weight: 1}, {Name: v1.ResourceMemory, Weight: 1}, {Name: v1.ResourceEphemeralStorage, Weight: 1}},
	}
	o := plugins.Options{Balanced: slices.Clone(rapid.SampledFrom(lists).Draw(t, "balanced"))}
	o.Fit.Resources = slices.Clone(rapid.SampledFrom(lists).Draw(t, "scored"))
	if o.Fit.Strategy = rapid.SampledFrom([]noderesources.Strategy{"", "", noderesources.MostAllocated, noderesources.RequestedToCapacityRatio}).Draw(t, "strategy"); o.Fit.Strategy == noderesources.RequestedToCapacityRatio {
		o.Fit.Shape = []framework.ShapePoint{{Utilization: 0, Score: 0}, {Utilization: 100, Score: 10}}
	}
	return o
}
