package nodename_test

import (
	"testing"

	"github.com/berthproject/berth/core/plugins/nodename"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

// The plugin's only reason.
const another = "Final: node(s) didn't match the requested node name"

var plugin = rt.Is(nodename.Plugin{})

func TestFilter(t *testing.T) {
	rt.Table{Plugin: plugin, Nodes: rt.Nodes{testkit.Node("a"), testkit.Node("b")}, Cases: []rt.Case{
		{Name: "no node named", Pod: testkit.Pod("p"), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "one of them", Pod: testkit.Pod("p").On("a"), Want: rt.Want{"a": rt.OK, "b": another}},
		{Name: "one that isn't there", Pod: testkit.Pod("p").On("c"), Want: rt.Want{rt.All: another}},
	}}.Filter(t)
}

func TestSignature(t *testing.T) {
	rt.Signatures{Plugin: plugin, Pod: func() *testkit.PodBuilder { return testkit.Pod("p").On("a") }, Cases: []rt.Change{
		rt.Differs("name, label", func(p *testkit.PodBuilder) { p.Name = "q"; p.Label("app", "web") }, rt.Same),
		rt.Differs("another node", func(p *testkit.PodBuilder) { p.On("b") }, rt.Local),
		rt.Differs("no node", func(p *testkit.PodBuilder) { p.On("") }, rt.Local),
	}}.Run(t)
}
