package tainttoleration_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/plugins/tainttoleration"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

const (
	noSchedule = v1.TaintEffectNoSchedule
	noExecute  = v1.TaintEffectNoExecute
	prefer     = v1.TaintEffectPreferNoSchedule
	equal      = v1.TolerationOpEqual
	exists     = v1.TolerationOpExists
	// The plugin's only reason.
	untolerated = "Final: node(s) had untolerated taint(s)"
)

var plugin = rt.Is(tainttoleration.Plugin{})

func pod(tolerations ...v1.Toleration) *testkit.PodBuilder {
	b := testkit.Pod("p")
	for _, t := range tolerations {
		b.Toleration(t)
	}
	return b
}

func node(name string, taints ...v1.Taint) *testkit.NodeBuilder {
	b := testkit.Node(name)
	b.Spec.Taints = taints
	return b
}

// Which tolerations tolerate a taint.
func TestTolerated(t *testing.T) {
	for _, c := range []struct {
		name       string
		taint      v1.Taint
		toleration v1.Toleration
		want       bool
	}{
		{"Equal: key and value", v1.Taint{Key: "k", Value: "v", Effect: noSchedule}, v1.Toleration{Key: "k", Operator: equal, Value: "v", Effect: noSchedule}, true},
		{"Equal: another key", v1.Taint{Key: "k", Value: "v", Effect: noSchedule}, v1.Toleration{Key: "l", Operator: equal, Value: "v", Effect: noSchedule}, false},
		{"Equal: another value", v1.Taint{Key: "k", Value: "v", Effect: noSchedule}, v1.Toleration{Key: "k", Operator: equal, Value: "w", Effect: noSchedule}, false},
		{"Equal: another effect", v1.Taint{Key: "k", Value: "v", Effect: noSchedule}, v1.Toleration{Key: "k", Operator: equal, Value: "v", Effect: noExecute}, false},
		{"Equal: every effect", v1.Taint{Key: "k", Value: "v", Effect: noExecute}, v1.Toleration{Key: "k", Operator: equal, Value: "v"}, true},
		{"Equal: every key of a value", v1.Taint{Key: "k", Value: "v", Effect: noSchedule}, v1.Toleration{Operator: equal, Value: "v"}, true},
		{"Equal is the default", v1.Taint{Key: "k", Value: "v", Effect: noSchedule}, v1.Toleration{Key: "k", Value: "v"}, true},
		{"Equal is the default: another value", v1.Taint{Key: "k", Value: "v", Effect: noSchedule}, v1.Toleration{Key: "k", Value: "w"}, false},
		{"Exists: key, with whatever value", v1.Taint{Key: "k", Value: "v", Effect: noSchedule}, v1.Toleration{Key: "k", Operator: exists}, true},
		{"Exists: another key", v1.Taint{Key: "k", Value: "v", Effect: noSchedule}, v1.Toleration{Key: "l", Operator: exists}, false},
		{"Exists: another effect", v1.Taint{Key: "k", Value: "v", Effect: noSchedule}, v1.Toleration{Key: "k", Operator: exists, Effect: prefer}, false},
		{"Exists: everything", v1.Taint{Key: "k", Value: "v", Effect: noExecute}, v1.Toleration{Operator: exists}, true},
		{"Exists: everything of an effect", v1.Taint{Key: "k", Value: "v", Effect: noExecute}, v1.Toleration{Operator: exists, Effect: noExecute}, true},
		{"Gt: behind a gate that is off", v1.Taint{Key: "k", Value: "5", Effect: noSchedule}, v1.Toleration{Key: "k", Operator: "Gt", Value: "4"}, false},
		{"Lt: behind a gate that is off", v1.Taint{Key: "k", Value: "5", Effect: noSchedule}, v1.Toleration{Key: "k", Operator: "Lt", Value: "6"}, false},
	} {
		if got := tainttoleration.Tolerated([]v1.Toleration{c.toleration}, &c.taint); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	taint := v1.Taint{Key: "k", Effect: noSchedule}
	if tainttoleration.Tolerated(nil, &taint) {
		t.Error("no toleration tolerates a taint")
	}
	if !tainttoleration.Tolerated([]v1.Toleration{{Key: "j"}, {Key: "k"}, {Key: "l"}}, &taint) {
		t.Error("one of several tolerations doesn't tolerate the taint")
	}
	if !tainttoleration.Tolerated([]v1.Toleration{{Key: "k", Value: "w"}, {Key: "k"}}, &taint) {
		t.Error("a toleration after one of the key with another value doesn't tolerate the taint")
	}
}

func TestFilter(t *testing.T) {
	one := func(name string, p *testkit.PodBuilder, want string, taints ...v1.Taint) rt.Case {
		return rt.Case{Name: name, Pod: p, Nodes: rt.Nodes{node("n", taints...)}, Want: rt.Want{"n": want}}
	}
	taint := func(key string, effect v1.TaintEffect) v1.Taint { return v1.Taint{Key: key, Effect: effect} }
	rt.Table{Plugin: plugin, Cases: []rt.Case{
		one("no taint", pod(), rt.OK),
		one("NoSchedule", pod(), untolerated, taint("k", noSchedule)),
		one("NoExecute", pod(), untolerated, taint("k", noExecute)),
		one("PreferNoSchedule", pod(), rt.OK, taint("k", prefer)),
		one("tolerated", pod(v1.Toleration{Key: "k"}), rt.OK, taint("k", noSchedule)),
		one("one of two is", pod(v1.Toleration{Key: "k"}), untolerated, taint("k", noSchedule), taint("l", noExecute)),
		one("both are", pod(v1.Toleration{Key: "l"}, v1.Toleration{Key: "k"}), rt.OK, taint("k", noSchedule), taint("l", noExecute)),
		one("one after a preference", pod(), untolerated, taint("k", prefer), taint("l", noSchedule)),
		one("tolerated with another effect", pod(v1.Toleration{Key: "k", Effect: noExecute}), untolerated, taint("k", noSchedule)),
	}}.Filter(t)
}

// A raw score is the number of PreferNoSchedule taints that the pod doesn't
// tolerate; the node with the most of them scores 0.
func TestScore(t *testing.T) {
	k, l, m, n := v1.Taint{Key: "k", Effect: prefer}, v1.Taint{Key: "l", Effect: prefer}, v1.Taint{Key: "m", Effect: prefer}, v1.Taint{Key: "n", Effect: noSchedule}
	nodes := rt.Nodes{node("none"), node("one", k), node("three", k, l, m)}
	rt.Table{Plugin: plugin, Nodes: nodes, Cases: []rt.Case{
		{Name: "no node has one", Pod: pod(), Nodes: rt.Nodes{node("a"), node("b")}, Want: rt.Want{rt.All: "100 raw 0"}},
		{Name: "all nodes have one", Pod: pod(), Nodes: rt.Nodes{node("a", k), node("b", k)}, Want: rt.Want{rt.All: "0 raw 1"}},
		{Name: "none, one and three", Pod: pod(), Want: rt.Want{"none": "100 raw 0", "one": "67 raw 1", "three": "0 raw 3"}},
		{Name: "tolerated ones don't count", Pod: pod(v1.Toleration{Key: "k"}), Want: rt.Want{"none": "100 raw 0", "one": "100 raw 0", "three": "0 raw 2"}},
		{Name: "tolerated with the effect", Pod: pod(v1.Toleration{Key: "k", Effect: prefer}), Want: rt.Want{"none": "100 raw 0", "one": "100 raw 0", "three": "0 raw 2"}},
		{Name: "tolerated with another effect", Pod: pod(v1.Toleration{Key: "k", Effect: noSchedule}), Want: rt.Want{"none": "100 raw 0", "one": "67 raw 1", "three": "0 raw 3"}},
		{Name: "other effects don't count", Pod: pod(v1.Toleration{Key: "n"}), Nodes: rt.Nodes{node("a", n), node("b", k, n)}, Want: rt.Want{"a": "100 raw 0", "b": "0 raw 1"}},
		{Name: "nodes that can't take the pod don't normalise", Pod: pod(), Elsewhere: []string{"three"}, Want: rt.Want{"none": "100 raw 0", "one": "0 raw 1"}},
		{Name: "nor do those with untolerated taints", Pod: pod(), Nodes: rt.Nodes{node("a"), node("b", k), node("c", k, l, n)}, Want: rt.Want{"a": "100 raw 0", "b": "0 raw 1", "c": untolerated}},
	}}.Score(t)
}

func TestSignature(t *testing.T) {
	base := v1.Toleration{Key: "k", Operator: equal, Value: "v", Effect: noSchedule}
	first := func(change func(*v1.Toleration)) func(*testkit.PodBuilder) {
		return func(p *testkit.PodBuilder) { change(&p.Spec.Tolerations[0]) }
	}
	seconds := int64(300)
	rt.Signatures{Plugin: plugin, Pod: func() *testkit.PodBuilder { return pod(base) }, Cases: []rt.Change{
		rt.Differs("name, label, request", func(p *testkit.PodBuilder) { p.Name = "q"; p.Label("app", "web").Req("cpu", "1") }, rt.Same),
		rt.Differs("tolerationSeconds", first(func(t *v1.Toleration) { t.TolerationSeconds = &seconds }), rt.Same),
		rt.Differs("key", first(func(t *v1.Toleration) { t.Key = "l" }), rt.Local),
		rt.Differs("operator", first(func(t *v1.Toleration) { t.Operator = exists }), rt.Local),
		rt.Differs("value", first(func(t *v1.Toleration) { t.Value = "w" }), rt.Local),
		rt.Differs("effect", first(func(t *v1.Toleration) { t.Effect = noExecute }), rt.Local),
		rt.Differs("one more", func(p *testkit.PodBuilder) { p.Toleration(base) }, rt.Local),
		rt.Differs("none", func(p *testkit.PodBuilder) { p.Spec.Tolerations = nil }, rt.Local),
	}}.Run(t)
}
