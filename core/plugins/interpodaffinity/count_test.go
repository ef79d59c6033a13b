package interpodaffinity_test

import (
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins/interpodaffinity"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestCount puts pods of one class on a node one after the other. That Count is 0 wherever
// Filter rejects a node, every test of Filter checks.
func TestCount(t *testing.T) {
	const unlimited, cannot = framework.Unlimited, -1
	apart := func(key string) *testkit.PodBuilder { return web().Apart(key, "app", "web") }
	for _, c := range []struct {
		name string
		pod  *testkit.PodBuilder
		node *testkit.NodeBuilder
		on   *testkit.PodBuilder
		want int
	}{
		{"apart from each other", apart(hostname), node("a1"), nil, 1},
		{"apart from each other, with one there", apart(hostname), node("a1"), web(), 0},
		{"apart from each other, with another pod there", apart(hostname), node("a1"), db("a1"), 1},
		{"apart from others", web().Apart(hostname, "app", "db"), node("a1"), nil, unlimited},
		{"apart from others, with one there", web().Apart(hostname, "app", "db"), node("a1"), db("a1"), 0},
		{"a pod there keeps apart from it", web(), node("a1"), db("a1").Apart(hostname, "app", "web"), 0},
		{"a node without a hostname", apart(hostname), node("a1").Unlabel(hostname), web(), unlimited},
		{"apart over zones", apart(zone), node("a1"), nil, cannot},
		{"apart over both", apart(zone).Apart(hostname, "app", "db"), node("a1"), nil, cannot},
		{"together on nodes", web().Together(hostname, "app", "web"), node("a1"), nil, cannot},
		{"a pod there keeps apart over zones", web(), node("a1"), db("a1").Apart(zone, "app", "web"), cannot},
	} {
		t.Run(c.name, func(t *testing.T) {
			schema := cluster.NewSchema()
			s := cluster.New(schema)
			s.SetNode(schema.ParseNode(c.node.Obj(), ""))
			if c.on != nil {
				c.on.Name, c.on.UID = "there", "there"
				s.Place(schema.ParsePod(c.on.Obj()), c.node.Name)
			}
			rules, _ := interpodaffinity.New(interpodaffinity.Args{}).For(schema.ParsePod(c.pod.Obj()), s)
			got := cannot
			if counter, ok := rules.Group.(framework.Counter); ok {
				got = counter.Count(s.NodeByName(c.node.Name).Detached())
			}
			if got != c.want {
				t.Errorf("the node takes %d pods, want %d (%d: it can't be counted)", got, c.want, cannot)
			}
		})
	}
}

// TestNodeBound: a rule is bound to nodes if all that it rejects one for is on that node.
func TestNodeBound(t *testing.T) {
	for _, c := range []struct {
		name string
		pod  *testkit.PodBuilder
		want bool
	}{
		{"with others on nodes", web().Together(hostname, "app", "db"), true},
		{"with others, apart from each other", web().Together(hostname, "app", "db").Apart(hostname, "app", "web"), true},
		{"together on nodes, where the first may be anywhere", web().Together(hostname, "app", "web"), false},
		{"with others in zones", web().Together(zone, "app", "db"), false},
		{"with others on nodes and in zones", web().Together(hostname, "app", "db").Together(zone, "app", "db"), false},
		{"with others on nodes, apart over zones", web().Together(hostname, "app", "db").Apart(zone, "app", "web"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			schema := cluster.NewSchema()
			rules, _ := interpodaffinity.New(interpodaffinity.Args{}).For(schema.ParsePod(c.pod.Obj()), cluster.New(schema))
			if got := rules.Group.(framework.NodeBound).NodeBound(); got != c.want {
				t.Errorf("it is bound: %t, want %t", got, c.want)
			}
		})
	}
}
