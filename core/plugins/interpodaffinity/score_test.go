package interpodaffinity_test

import (
	"testing"

	"github.com/berthproject/berth/core/plugins/interpodaffinity"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

// The raw score is the sum of weights of what is in the node's domains; 100 is
// the highest of any feasible node, 0 the lowest.
func TestPreferences(t *testing.T) {
	cache := func(on string) *testkit.PodBuilder { return testkit.Pod("cache").Label("app", "cache").On(on) }
	rt.Table{Plugin: plugin, Nodes: twoZones(), Cases: []rt.Case{
		{Name: "near: by zone", Pod: web().PreferTogether(5, zone, "app", "db"), Pods: rt.Pods{db("a1")},
			Want: rt.Want{"a1": "100 raw 5", "a2": "100 raw 5", rt.All: "0 raw 0"}},
		{Name: "near: by host", Pod: web().PreferTogether(5, hostname, "app", "db"), Pods: rt.Pods{db("a1")},
			Want: rt.Want{"a1": "100 raw 5", rt.All: "0 raw 0"}},
		{Name: "near: each pod counts", Pod: web().PreferTogether(5, hostname, "app", "db"), Pods: rt.Pods{db("a1"), db("a1"), db("a1"), db("b1")},
			Want: rt.Want{"a1": "100 raw 15", "b1": "33 raw 5", rt.All: "0 raw 0"}},
		{Name: "near: each pod counts, by zone", Pod: web().PreferTogether(5, zone, "app", "db"), Nodes: append(twoZones(), node("c1")), Pods: rt.Pods{db("a1"), db("a2"), db("a1"), db("b1")},
			Want: rt.Want{"a1": "100 raw 15", "a2": "100 raw 15", "b1": "33 raw 5", "b2": "33 raw 5", "c1": "0 raw 0"}},
		{Name: "apart", Pod: web().PreferApart(5, zone, "app", "db"), Pods: rt.Pods{db("a1")},
			Want: rt.Want{"a1": "0 raw -5", "a2": "0 raw -5", rt.All: "100 raw 0"}},
		{Name: "apart: by host", Pod: web().PreferApart(5, hostname, "app", "db"), Pods: rt.Pods{db("a1"), db("a1"), db("b1")},
			Want: rt.Want{"a1": "0 raw -10", "b1": "50 raw -5", rt.All: "100 raw 0"}},
		{Name: "near and apart add up", Pod: web().PreferTogether(8, zone, "app", "db").PreferApart(3, hostname, "app", "cache"), Pods: rt.Pods{db("a1"), cache("a1"), cache("b1")},
			Want: rt.Want{"a1": "72 raw 5", "a2": "100 raw 8", "b1": "0 raw -3", "b2": "27 raw 0"}},
		{Name: "all alike", Pod: web().PreferTogether(5, zone, "app", "db"), Pods: rt.Pods{db("a1"), db("b1")}, Want: rt.Want{rt.All: "0 raw 5"}},
		{Name: "one node", Pod: web().PreferTogether(5, zone, "app", "db"), Nodes: rt.Nodes{node("a1")}, Pods: rt.Pods{db("a1")}, Want: rt.Want{"a1": "0 raw 5"}},
		{Name: "a node without the key", Pod: web().PreferTogether(5, zone, "app", "db"), Nodes: rt.Nodes{node("a1"), testkit.Node("x")}, Pods: rt.Pods{db("a1"), db("x"), db("x")},
			Want: rt.Want{"a1": "100 raw 5", "x": "0 raw 0"}},
		{Name: "nodes that can't take the pod don't normalise", Pod: web().PreferTogether(5, hostname, "app", "db"), Pods: rt.Pods{db("a1"), db("a1"), db("b1")}, Elsewhere: []string{"a1"},
			Want: rt.Want{"b1": "100 raw 5", rt.All: "0 raw 0"}},
		{Name: "neither do those that the plugin rejects", Pod: web().PreferApart(5, hostname, "app", "db").Apart(hostname, "app", "cache"), Pods: rt.Pods{db("a1"), db("a1"), cache("a1"), db("b1")},
			Want: rt.Want{"a1": ownAnti, "b1": "0 raw -5", rt.All: "100 raw 0"}},
		{Name: "required and preferred over the hostname", Pod: web().Together(hostname, "app", "db").PreferTogether(5, hostname, "app", "db"), Pods: rt.Pods{db("a1"), db("b1"), db("b1")},
			Want: rt.Want{"a1": "0 raw 5", "b1": "100 raw 10", rt.All: affinity}},
		{Name: "required terms of its own aren't scored", Pod: web().Apart(hostname, "app", "db"), Pods: rt.Pods{db("a1")},
			Want: rt.Want{"a1": ownAnti, rt.All: "0 raw 0"}},
	}}.Score(t)
}

// Terms of placed pods that the pod meets are scored as well.
func TestOthersPreferences(t *testing.T) {
	likes := db("a1").PreferTogether(7, zone, "app", "web")
	likesTwice := db("b1").PreferTogether(3, zone, "app", "web").PreferTogether(2, hostname, "app", "web")
	needs := db("a1").Together(zone, "app", "web")
	near := rt.Want{"a1": "100 raw 7", "a2": "100 raw 7", rt.All: "0 raw 0"}
	ignoring := with(interpodaffinity.Args{HardPodAffinityWeight: 1, IgnorePreferredTermsOfExistingPods: true})
	rt.Table{Plugin: plugin, Nodes: twoZones(), Cases: []rt.Case{
		{Name: "likes it", Pod: web(), Pods: rt.Pods{likes}, Want: near},
		{Name: "likes others", Pod: testkit.Pod("p").Label("app", "cache"), Pods: rt.Pods{likes}, Want: skip},
		{Name: "would be apart", Pod: web(), Pods: rt.Pods{db("a1").PreferApart(7, zone, "app", "web")},
			Want: rt.Want{"a1": "0 raw -7", "a2": "0 raw -7", rt.All: "100 raw 0"}},
		{Name: "several owners, and weights of their own", Pod: web(), Pods: rt.Pods{likes, likesTwice},
			Want: rt.Want{"a1": "100 raw 7", "a2": "100 raw 7", "b1": "50 raw 5", "b2": "0 raw 3"}},
		{Name: "both sides", Pod: web().PreferApart(2, zone, "app", "db"), Pods: rt.Pods{likes},
			Want: rt.Want{"a1": "100 raw 5", "a2": "100 raw 5", rt.All: "0 raw 0"}},
		{Name: "required affinity counts 1", Pod: web(), Pods: rt.Pods{needs},
			Want: rt.Want{"a1": "100 raw 1", "a2": "100 raw 1", rt.All: "0 raw 0"}},
		{Name: "required affinity with hardPodAffinityWeight 5", Plugin: with(interpodaffinity.Args{HardPodAffinityWeight: 5}), Pod: web(), Pods: rt.Pods{needs, needs},
			Want: rt.Want{"a1": "100 raw 10", "a2": "100 raw 10", rt.All: "0 raw 0"}},
		{Name: "required affinity with hardPodAffinityWeight 0", Plugin: with(interpodaffinity.Args{}), Pod: web(), Pods: rt.Pods{needs}, Want: skip},
		{Name: "required anti-affinity isn't scored", Pod: web(), Pods: rt.Pods{db("a1").Apart(hostname, "app", "web")},
			Want: rt.Want{"a1": othersAnti, rt.All: "0 raw 0"}},

		{Name: "ignorePreferredTermsOfExistingPods: a pod without preferences", Plugin: ignoring, Pod: web(), Pods: rt.Pods{likes}, Want: skip},
		{Name: "ignorePreferredTermsOfExistingPods: others' required affinity neither", Plugin: ignoring, Pod: web().Together(zone, "app", "db"), Pods: rt.Pods{needs},
			Want: rt.Want{"a1": "0 raw 0", "a2": "0 raw 0", rt.All: affinity}},
		{Name: "ignorePreferredTermsOfExistingPods: others' anti-affinity rejects", Plugin: ignoring, Pod: web(), Pods: rt.Pods{db("a1").Apart(hostname, "app", "web")},
			Want: rt.Want{"a1": othersAnti, rt.All: "0 raw 0"}},
		{Name: "ignorePreferredTermsOfExistingPods: a pod that would be near", Plugin: ignoring, Pod: web().PreferTogether(1, zone, "app", "x"), Pods: rt.Pods{likes}, Want: near},
		{Name: "ignorePreferredTermsOfExistingPods: a pod that would be apart", Plugin: ignoring, Pod: web().PreferApart(1, zone, "app", "x"), Pods: rt.Pods{likes}, Want: near},
	}}.Score(t)
}
