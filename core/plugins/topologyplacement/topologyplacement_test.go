package topologyplacement_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/plugins/topologyplacement"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

const zone = v1.LabelTopologyZone

var plugin = rt.Is(topologyplacement.Plugin{})

// nodes are two in zone a, one in zone b, and one in none.
func nodes() rt.Nodes {
	return rt.Nodes{testkit.Node("a1").Zone("a"), testkit.Node("a2").Zone("a"), testkit.Node("b1").Zone("b"), testkit.Node("none")}
}

func member(name, group string) *testkit.PodBuilder { return testkit.Pod(name).PodGroup(group) }

// groups are one that requires a zone, and one that requires nothing.
var groups = rt.Objects{testkit.PodGroup("rack", 2, zone), testkit.PodGroup("gang", 2, "")}

func TestFilter(t *testing.T) {
	const (
		unlabelled = "Final: node(s) didn't have the label topology.kubernetes.io/zone that the pod group requires"
		elsewhere  = "Final: node(s) weren't in the pod group's domain topology.kubernetes.io/zone=a"
	)
	rt.Table{Plugin: plugin, Nodes: nodes(), Objects: groups, Cases: []rt.Case{
		{Name: "no group", Pod: testkit.Pod("p"), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "a group that isn't there", Pod: member("p", "gone"), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "a group that requires no topology", Pod: member("p", "gang"), Pods: rt.Pods{member("x", "gang").On("a1")}, Want: rt.Want{rt.All: rt.Skip}},
		{Name: "the first member", Pod: member("p", "rack"), Want: rt.Want{rt.All: rt.OK, "none": unlabelled}},
		{Name: "another group's member", Pod: member("p", "rack"), Pods: rt.Pods{member("x", "gang").On("a1")}, Want: rt.Want{rt.All: rt.OK, "none": unlabelled}},
		{Name: "the member of a group of that name elsewhere", Pod: member("p", "rack"), Pods: rt.Pods{member("x", "rack").Namespaced("other").On("a1")},
			Want: rt.Want{rt.All: rt.OK, "none": unlabelled}},
		{Name: "members in one domain", Pod: member("p", "rack"), Pods: rt.Pods{member("x", "rack").On("a1"), member("y", "rack").On("a2")},
			Want: rt.Want{"a1": rt.OK, "a2": rt.OK, "b1": elsewhere, "none": elsewhere}},
		{Name: "members in two domains", Pod: member("p", "rack"), Pods: rt.Pods{member("x", "rack").On("a1"), member("y", "rack").On("b1")},
			Want: rt.Want{rt.All: rt.Everywhere("cannot determine domain for already scheduled pods: more than 1 domain found for pod group: a, b")}},
	}}.Filter(t)
}

func TestSignature(t *testing.T) {
	rt.Signatures{Plugin: plugin, Nodes: nodes(), Objects: groups, Pods: rt.Pods{member("x", "rack").On("a1")}, Pod: func() *testkit.PodBuilder { return testkit.Pod("p") }, Cases: []rt.Change{
		rt.Differs("name, label", func(p *testkit.PodBuilder) { p.Name = "q"; p.Label("app", "web") }, rt.Same),
		rt.Differs("a group that requires no topology", func(p *testkit.PodBuilder) { p.PodGroup("gang") }, rt.Same),
		rt.Differs("a group that requires one", func(p *testkit.PodBuilder) { p.PodGroup("rack") }, rt.Group),
	}}.Run(t)
}

func TestReclassifies(t *testing.T) {
	rt.Reclassifies{Plugin: plugin, Nodes: nodes(), Objects: groups, Pods: rt.Pods{member("x", "rack").On("a1")},
		Waiting: rt.Pods{testkit.Pod("plain"), member("gang", "gang"), member("rack", "rack")},
		Cases: []rt.Event[string]{
			rt.Reclassified("the last member goes", func(c *rt.Cluster) { c.Delete("x") }, "rack"),
			rt.Reclassified("a member comes to another domain", func(c *rt.Cluster) { c.Place(member("y", "rack").On("b1")) }, "rack"),
			rt.Reclassified("a member of another group comes", func(c *rt.Cluster) { c.Place(member("y", "gang").On("b1")) }, ""),
			rt.Reclassified("a pod without a group comes", func(c *rt.Cluster) { c.Place(testkit.Pod("y").On("b1")) }, ""),
			rt.Reclassified("the group requires nothing any more", func(c *rt.Cluster) { c.Set(testkit.PodGroup("rack", 2, "")) }, "rack"),
			rt.Reclassified("the node of a member changes its zone", func(c *rt.Cluster) { c.Node(testkit.Node("a1").Zone("c")) }, "gang rack"),
			rt.Reclassified("another node changes its zone", func(c *rt.Cluster) { c.Node(testkit.Node("a2").Zone("c")) }, ""),
			rt.Reclassified("the node of a member is cordoned", func(c *rt.Cluster) { c.Node(testkit.Node("a1").Zone("a").Cordon()) }, ""),
		}}.Run(t)
}
