package nodefilters_test

import (
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins/nodefilters"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

func namePlugin(s *cluster.Schema) framework.Plugin { return nodefilters.NewByName(s.Version()) }

// TestByName has the reason of nodes of another name: in 1.37 they are left out at PreFilter.
func TestByName(t *testing.T) {
	for v, another := range map[compat.Version]string{
		compat.V36: "Final: node(s) didn't match the requested node name",
		compat.V37: "Final: node(s) didn't satisfy plugin(s) [NodeName]",
	} {
		rt.Table{Version: v, Plugin: namePlugin, Nodes: rt.Nodes{testkit.Node("a"), testkit.Node("b")}, Cases: []rt.Case{
			{Name: "no node named in " + v.String(), Pod: testkit.Pod("p"), Want: rt.Want{rt.All: rt.Skip}},
			{Name: "one of them in " + v.String(), Pod: testkit.Pod("p").On("a"), Want: rt.Want{"a": rt.OK, "b": another}},
			{Name: "one that isn't there in " + v.String(), Pod: testkit.Pod("p").On("c"), Want: rt.Want{rt.All: another}},
		}}.Filter(t)
	}
}

func TestByNameSignature(t *testing.T) {
	rt.Signatures{Plugin: namePlugin, Pod: func() *testkit.PodBuilder { return testkit.Pod("p").On("a") }, Cases: []rt.Change{
		rt.Differs("name, label", func(p *testkit.PodBuilder) { p.Name = "q"; p.Label("app", "web") }, rt.Same),
		rt.Differs("another node", func(p *testkit.PodBuilder) { p.On("b") }, rt.Local),
		rt.Differs("no node", func(p *testkit.PodBuilder) { p.On("") }, rt.Local),
	}}.Run(t)
}
