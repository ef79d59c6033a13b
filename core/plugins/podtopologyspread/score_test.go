package podtopologyspread_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/plugins/podtopologyspread"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

// A raw score is pods × ln(domains + 2) + maxSkew − 1, summed over the soft
// constraints and rounded; normalised it is
// 100 × (highest + lowest − raw) / highest. ln 3 = 1.10, ln 4 = 1.39, ln 5 = 1.61,
// ln 6 = 1.79.
func TestSoftConstraints(t *testing.T) {
	all := func(answer string) rt.Want { return rt.Want{rt.All: answer} }
	over := func(c ...constraint) *testkit.PodBuilder {
		p := pod()
		for i := range c {
			p.Spread(c[i])
		}
		return p
	}
	rt.Table{Plugin: plugin, Nodes: twoZones(), Cases: []rt.Case{
		{Name: "no pods", Pod: over(soft(hostname, 1)), Want: all("100 raw 0")},
		{Name: "no pods, and a raw score from maxSkew", Pod: over(soft(hostname, 4)), Want: all("100 raw 3")},
		{Name: "one node", Pod: over(soft(hostname, 1)), Nodes: rt.Nodes{node("a1")}, Pods: web("a1:3"), Want: all("100 raw 3")},
		{Name: "the same number everywhere", Pod: over(soft(hostname, 1)), Pods: web("a1:1 a2:1 b1:1 b2:1"), Want: all("100 raw 2")},
		{Name: "nodes of 2, 1, 0 and 3", Pod: over(soft(hostname, 1)), Pods: web("a1:2 a2:1 b2:3"),
			Want: rt.Want{"a1": "20 raw 4", "a2": "60 raw 2", "b1": "100 raw 0", "b2": "0 raw 5"}},
		{Name: "a larger maxSkew evens out", Pod: over(soft(hostname, 2)), Pods: web("a1:2 a2:1 b2:3"),
			Want: rt.Want{"a1": "33 raw 5", "a2": "66 raw 3", "b1": "100 raw 1", "b2": "16 raw 6"}},
		{Name: "zones of 3 and 1", Pod: over(soft(zone, 1)), Pods: web("a1:2 a2:1 b1:1"),
			Want: rt.Want{"a1": "25 raw 4", "a2": "25 raw 4", "b1": "100 raw 1", "b2": "100 raw 1"}},
		{Name: "zone and hostname add up", Pod: over(soft(zone, 1), soft(hostname, 1)), Pods: web("a1:2 a2:1 b1:1"),
			// 3·1.39 + 2·1.79 = 7.7; 3·1.39 + 1.79 = 5.9; 1.39 + 1.79 = 3.2; 1.39.
			Want: rt.Want{"a1": "12 raw 8", "a2": "37 raw 6", "b1": "75 raw 3", "b2": "100 raw 1"}},
		{Name: "zone and rack add up", Pod: over(soft(zone, 1), soft("rack", 1)), Pods: web("a1:2 a2:1 b1:1"),
			Nodes: rt.Nodes{node("a1").Label("rack", "r"), node("a2").Label("rack", "s"), node("b1").Label("rack", "r"), node("b2").Label("rack", "t")},
			// Zones a: 3, b: 1; racks r: 3, s: 1, t: 0. 3·1.39 + 3·1.61 = 9; 3·1.39 + 1.61 = 5.8; 1.39 + 3·1.61 = 6.2; 1.39.
			Want: rt.Want{"a1": "11 raw 9", "a2": "44 raw 6", "b1": "44 raw 6", "b2": "100 raw 1"}},
		{Name: "with selectors of their own", Pod: over(soft(zone, 1), soft(hostname, 1, overDB)),
			Pods: append(web("a1:1"), placed(testkit.Pod("db").Label("app", "db"), "b2:2")...),
			Want: rt.Want{"a1": "75 raw 1", "a2": "75 raw 1", "b1": "100 raw 0", "b2": "0 raw 4"}},
		{Name: "a hard one over the hostname counts apart", Pod: over(hard(hostname, 9, overDB), soft(hostname, 1)),
			Pods: append(web("a1:1"), placed(testkit.Pod("db").Label("app", "db"), "a1:1 b2:2")...),
			Want: rt.Want{"a1": "0 raw 2", rt.All: "100 raw 0"}},
		{Name: "a hard constraint isn't scored", Pod: over(hard(zone, 9), soft(hostname, 1)), Pods: web("a1:3"),
			Want: rt.Want{"a1": "0 raw 5", rt.All: "100 raw 0"}},
		{Name: "hard constraints only", Pod: over(hard(zone, 9)), Pods: web("a1:3"), Want: all("0 raw 0")},

		{Name: "domains of nodes that can't take the pod don't weigh", Pod: over(soft(hostname, 1)), Pods: web("a1:1 a2:2"), Elsewhere: []string{"b1", "b2"},
			Want: rt.Want{"a1": "100 raw 1", "a2": "33 raw 3"}}, // 1.39 and 2.8
		{Name: "nor do their zones", Pod: over(soft(zone, 1)), Pods: web("a1:2 b1:4"), Elsewhere: []string{"b1", "b2"},
			Want: all("100 raw 2")}, // 2·1.10
		{Name: "but pods there count for their zone", Pod: over(soft(zone, 1)), Pods: web("a1:1 a2:3 b1:2"), Elsewhere: []string{"a2"},
			Want: rt.Want{"a1": "50 raw 6", rt.All: "100 raw 3"}},
		{Name: "their count doesn't normalise", Pod: over(soft(hostname, 1)), Pods: web("a1:1 a2:2 b1:9"), Elsewhere: []string{"b1", "b2"},
			Want: rt.Want{"a1": "100 raw 1", "a2": "33 raw 3"}},

		{Name: "a node without the key scores 0", Pod: over(soft(zone, 1)), Nodes: rt.Nodes{node("a1"), node("b1"), testkit.Node("x")}, Pods: web("a1:1 x:5"),
			Want: rt.Want{"a1": "0 raw 1", "b1": "100 raw 0", "x": "0 raw 0"}},
		{Name: "and is no domain", Pod: over(soft(zone, 1), soft(hostname, 1)), Nodes: rt.Nodes{node("a1"), node("b1"), testkit.Node("x")}, Pods: web("a1:2 b1:1 x:5"),
			Want: rt.Want{"a1": "50 raw 6", "b1": "100 raw 3", "x": "0 raw 0"}}, // 2·(1.39 + 1.39), of two zones and two nodes
		{Name: "a node without a hostname", Pod: over(soft(hostname, 1)), Nodes: rt.Nodes{node("a1"), node("b1").Unlabel(hostname)}, Pods: web("a1:1 b1:2"),
			Want: rt.Want{"a1": "100 raw 1", "b1": "0 raw 0"}},
		{Name: "hostname and zone on different nodes", Pod: over(soft(hostname, 1), soft(zone, 1)), Nodes: rt.Nodes{node("a1").Unlabel(hostname), testkit.Node("x"), node("b1")}, Pods: web("b1:1"),
			Want: rt.Want{"a1": "0 raw 0", "x": "0 raw 0", "b1": "100 raw 2"}}, // 1.10 + 1.10
		{Name: "a hard constraint's hostname is missing from no soft score", Pod: over(soft(zone, 1), hard(hostname, 9)), Pods: web("a1:1"),
			Want: rt.Want{"a1": "0 raw 1", "a2": "0 raw 1", rt.All: "100 raw 0"}},

		{Name: "nodeAffinityPolicy: pods on nodes left out don't count", Pod: over(soft(zone, 1)).RequireIn(hostname, "a1", "b1"), Pods: web("a1:1 a2:2 b1:2"), Elsewhere: []string{"a2", "b2"},
			Want: rt.Want{"a1": "100 raw 1", "b1": "33 raw 3"}},
		{Name: "nodeAffinityPolicy: Ignore", Pod: over(soft(zone, 1, ignoreAffinity)).RequireIn(hostname, "a1", "b1"), Pods: web("a1:1 a2:2 b1:2"), Elsewhere: []string{"a2", "b2"},
			Want: rt.Want{"a1": "75 raw 4", "b1": "100 raw 3"}},
		{Name: "nodeTaintsPolicy: Honor", Pod: over(soft(zone, 1, honorTaints)), Nodes: rt.Nodes{node("a1"), node("a2").Taint("k", "", v1.TaintEffectNoSchedule), node("b1")},
			Pods: web("a2:3 b1:1"), Elsewhere: []string{"a2"}, Want: rt.Want{"a1": "100 raw 0", "b1": "0 raw 1"}},
		{Name: "policies say nothing of the node's own pods", Pod: over(soft(hostname, 1, honorAffinity)).RequireIn(zone, "b"), Pods: web("a1:1"),
			Want: rt.Want{"a1": "0 raw 2", rt.All: "100 raw 0"}},
		{Name: "pods being deleted don't count", Pod: over(soft(hostname, 1)), Pods: placed(testkit.Pod("x").Label("app", "web").Terminating(), "a1:3"), Want: all("100 raw 0")},
		{Name: "more constraints than are kept off the heap", Pod: over(soft(zone, 1), soft(zone, 2), soft(zone, 3), soft(zone, 4), soft(zone, 5), soft(zone, 6), soft(zone, 7), soft(zone, 8), soft(zone, 9)),
			Pods: web("a1:1"), Want: rt.Want{"a1": "75 raw 48", "a2": "75 raw 48", rt.All: "100 raw 36"}}, // 0+…+8, and 9·1.39
	}}.Score(t)
}

// The system defaults: hostname with maxSkew 3, and zone with maxSkew 5. Nodes
// without a zone are in a zone of their own, and score for the hostname only.
func TestSystemDefaults(t *testing.T) {
	unzoned := rt.Nodes{testkit.Node("x"), testkit.Node("y")}
	listed := rt.Is(podtopologyspread.New(podtopologyspread.Args{List: true, Constraints: []constraint{soft(hostname, 3, noSelector), soft(zone, 5, noSelector)}}))
	rt.Table{Plugin: plugin, Nodes: twoZones(), Objects: rt.Objects{testkit.Service("s", "app", "web")}, Cases: []rt.Case{
		{Name: "no pods", Pod: pod(), Want: rt.Want{rt.All: "100 raw 6"}}, // 2 + 4
		{Name: "a pod in zone a", Pod: pod(), Pods: web("a1:1"),
			// 1.79 + 2 + 1.39 + 4 = 9.2; 2 + 1.39 + 4 = 7.4; 6.
			Want: rt.Want{"a1": "66 raw 9", "a2": "88 raw 7", "b1": "100 raw 6", "b2": "100 raw 6"}},
		{Name: "no node has a zone", Pod: pod(), Nodes: unzoned, Pods: web("x:1"),
			Want: rt.Want{"x": "66 raw 3", "y": "100 raw 2"}}, // 1.39 + 2; 2
		{Name: "some have", Pod: pod(), Nodes: append(unzoned, node("a1")), Pods: web("a1:1"),
			// Two zones, three nodes: 1.61 + 2 + 1.39 + 4 = 9; 2.
			Want: rt.Want{"a1": "22 raw 9", "x": "100 raw 2", "y": "100 raw 2"}},
		{Name: "pods on nodes without a zone count for a zone with an empty name", Pod: pod(), Nodes: append(unzoned, testkit.Node("z").Zone("")), Pods: web("x:2"),
			// One zone: x has 2·1.61 + 2, z has 2 + 2·1.10 + 4.
			Want: rt.Want{"x": "62 raw 5", "y": "100 raw 2", "z": "25 raw 8"}},
		{Name: "a node without a hostname still counts for its zone", Pod: pod(), Nodes: rt.Nodes{node("a1").Unlabel(hostname), node("b1")}, Pods: web("a1:1 b1:1"),
			// Two nodes, two zones: 1.39 + 4 without the hostname's part; 1.39 + 2 + 1.39 + 4.
			Want: rt.Want{"a1": "100 raw 5", "b1": "55 raw 9"}},
		{Name: "the same as a list: nodes without a zone score 0", Plugin: listed, Pod: pod(), Nodes: append(unzoned, node("a1")), Pods: web("a1:1"),
			Want: rt.Want{"a1": "100 raw 8", "x": "0 raw 0", "y": "0 raw 0"}}, // 1.10 + 2 + 1.10 + 4
		{Name: "constraints of its own: nodes without a zone score 0", Pod: pod().Spread(soft(zone, 1)), Nodes: append(unzoned, node("a1")),
			Want: rt.Want{"a1": "100 raw 0", "x": "0 raw 0", "y": "0 raw 0"}},
	}}.Score(t)
}
