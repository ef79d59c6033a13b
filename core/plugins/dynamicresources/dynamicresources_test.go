package dynamicresources_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/plugins/dynamicresources"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

var plugin = rt.Is(dynamicresources.Plugin{})

func claims(p *testkit.PodBuilder) *testkit.PodBuilder {
	p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, v1.PodResourceClaim{Name: "gpu"})
	return p
}

func TestFilter(t *testing.T) {
	rt.Table{Plugin: plugin, Nodes: rt.Nodes{testkit.Node("a"), testkit.Node("b")}, Cases: []rt.Case{
		{Name: "no resource claims", Pod: testkit.Pod("p"), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "a resource claim", Pod: claims(testkit.Pod("p")), Want: rt.Want{rt.All: rt.Everywhere("this version of Berth cannot place pods that use resource claims")}},
	}}.Filter(t)
}

func TestSignature(t *testing.T) {
	rt.Signatures{Plugin: plugin, Pod: func() *testkit.PodBuilder { return testkit.Pod("p") }, Cases: []rt.Change{
		rt.Differs("name, label", func(p *testkit.PodBuilder) { p.Name = "q"; p.Label("app", "web") }, rt.Same),
		rt.Differs("a resource claim", func(p *testkit.PodBuilder) { claims(p) }, rt.Group),
	}}.Run(t)
	rt.Signatures{Plugin: plugin, Pod: func() *testkit.PodBuilder { return claims(testkit.Pod("p")) }, Cases: []rt.Change{
		rt.Differs("one more resource claim", func(p *testkit.PodBuilder) { claims(p) }, rt.Same),
	}}.Run(t)
}
