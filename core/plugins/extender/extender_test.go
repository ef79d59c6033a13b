package extender_test

import (
	"testing"

	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins/extender"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

func with(extenders ...framework.Extender) rt.Make {
	return rt.Is(extender.Plugin{Extenders: extenders})
}

func TestThereAreNoRules(t *testing.T) {
	rt.Table{Plugin: with(framework.Extender{Filters: true}), Nodes: rt.Nodes{testkit.Node("n")}, Cases: []rt.Case{
		{Name: "a pod that the extender is asked about", Pod: testkit.Pod("p"), Want: rt.Want{rt.All: rt.Skip}},
	}}.Filter(t)
}

// Pods are told apart by UID where an extender has a say in where they go.
func TestSignature(t *testing.T) {
	gpu := func() *testkit.PodBuilder { return testkit.Pod("p").Req("example.com/gpu", "1") }
	plain := func() *testkit.PodBuilder { return testkit.Pod("p") }
	another := func(tells rt.Part) []rt.Change {
		return []rt.Change{rt.Differs("another pod", func(p *testkit.PodBuilder) { p.Name, p.UID = "q", "pod-q" }, tells)}
	}
	for name, x := range map[string]rt.Signatures{
		"no extender":                             {Plugin: with(), Pod: plain, Cases: another(rt.Same)},
		"one that filters":                        {Plugin: with(framework.Extender{Filters: true}), Pod: plain, Cases: another(rt.Group)},
		"one that scores":                         {Plugin: with(framework.Extender{Prioritizes: true}), Pod: plain, Cases: another(rt.Group)},
		"one that binds only":                     {Plugin: with(framework.Extender{Binds: true}), Pod: plain, Cases: another(rt.Same)},
		"one that is asked about victims only":    {Plugin: with(framework.Extender{Preempts: true}), Pod: plain, Cases: another(rt.Same)},
		"one that manages a resource of the pod":  {Plugin: with(framework.Extender{Filters: true, Managed: []string{"example.com/gpu"}}), Pod: gpu, Cases: another(rt.Group)},
		"one that manages a resource of others":   {Plugin: with(framework.Extender{Filters: true, Managed: []string{"example.com/gpu"}}), Pod: plain, Cases: another(rt.Same)},
		"the second of two concerns the pod":      {Plugin: with(framework.Extender{Binds: true}, framework.Extender{Filters: true}), Pod: plain, Cases: another(rt.Group)},
		"a pod that differs in everything but it": {Plugin: with(framework.Extender{Filters: true}), Pod: plain, Cases: []rt.Change{rt.Differs("name, label", func(p *testkit.PodBuilder) { p.Name = "q"; p.Label("app", "web") }, rt.Same)}},
	} {
		t.Run(name, x.Run)
	}
}
