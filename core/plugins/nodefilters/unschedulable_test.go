package nodefilters_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/plugins/nodefilters"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

// The unschedulableonly reason of ByPorts.
const unschedulable = "Final: node(s) were unschedulable"

var unschedulablePlugin = rt.Is(nodefilters.ByUnschedulable{})

func TestByUnschedulable(t *testing.T) {
	pod := func(tolerations ...v1.Toleration) *testkit.PodBuilder {
		return testkit.Pod("p").With(func(p *v1.Pod) { p.Spec.Tolerations = tolerations })
	}
	rejected := rt.Want{"open": rt.OK, "cordoned": unschedulable}
	rt.Table{Plugin: unschedulablePlugin, Nodes: rt.Nodes{testkit.Node("open"), testkit.Node("cordoned").Cordon()}, Cases: []rt.Case{
		{Name: "no toleration", Pod: pod(), Want: rejected},
		{Name: "the taint of cordoned nodes is tolerated", Pod: pod(v1.Toleration{Key: v1.TaintNodeUnschedulable, Operator: v1.TolerationOpExists}), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "everything is", Pod: pod(v1.Toleration{Operator: v1.TolerationOpExists}), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "with its effect", Pod: pod(v1.Toleration{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "with another effect", Pod: pod(v1.Toleration{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoExecute}), Want: rejected},
		{Name: "with another value", Pod: pod(v1.Toleration{Key: v1.TaintNodeUnschedulable, Value: "v"}), Want: rejected},
		{Name: "another taint", Pod: pod(v1.Toleration{Key: v1.TaintNodeNotReady, Operator: v1.TolerationOpExists}), Want: rejected},
		// The taint itself is TaintToleration's.
		{Name: "a node with the taint that isn't cordoned", Pod: pod(), Nodes: rt.Nodes{testkit.Node("n").Taint(v1.TaintNodeUnschedulable, "", v1.TaintEffectNoSchedule)}, Want: rt.Want{"n": rt.OK}},
	}}.Filter(t)
}

func TestByUnschedulableSignature(t *testing.T) {
	rt.Signatures{Plugin: unschedulablePlugin, Pod: func() *testkit.PodBuilder { return testkit.Pod("p") }, Cases: []rt.Change{
		rt.Differs("name, label", func(p *testkit.PodBuilder) { p.Name = "q"; p.Label("app", "web") }, rt.Same),
		rt.Differs("a toleration of another taint", func(p *testkit.PodBuilder) { p.Tolerate("k") }, rt.Same),
		rt.Differs("a toleration of the taint", func(p *testkit.PodBuilder) { p.Tolerate(v1.TaintNodeUnschedulable) }, rt.Local),
	}}.Run(t)
}
