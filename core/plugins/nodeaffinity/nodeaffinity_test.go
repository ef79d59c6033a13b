package nodeaffinity_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins/nodeaffinity"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

// Every reason of the plugin.
const (
	selector = "Final: node(s) didn't match Pod's node affinity/selector"
	enforced = "Final: node(s) didn't match scheduler-enforced node affinity"
	byName   = "Final: node(s) didn't satisfy plugin(s) [NodeAffinity]"
)

var (
	plugin  = rt.Is(nodeaffinity.New(nil))
	nowhere = rt.Want{rt.All: selector}
	onlyA   = rt.Want{"a": rt.OK, "b": selector}
)

func pod() *testkit.PodBuilder { return testkit.Pod("p") }

// Node a has disk=ssd and cores=8, node b has disk=hdd.
func nodes() rt.Nodes {
	return rt.Nodes{testkit.Node("a").Label("disk", "ssd").Label("cores", "8"), testkit.Node("b").Label("disk", "hdd")}
}

func expression(key string, op v1.NodeSelectorOperator, values ...string) v1.NodeSelectorRequirement {
	return v1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
}

// labels and fields are terms of one kind of requirement, all of which must be met.
func labels(r ...v1.NodeSelectorRequirement) v1.NodeSelectorTerm {
	return v1.NodeSelectorTerm{MatchExpressions: r}
}

func fields(r ...v1.NodeSelectorRequirement) v1.NodeSelectorTerm {
	return v1.NodeSelectorTerm{MatchFields: r}
}

func named(values ...string) v1.NodeSelectorRequirement {
	return expression("metadata.name", v1.NodeSelectorOpIn, values...)
}

func TestRequired(t *testing.T) {
	in, notIn, exists, absent, gt, lt := v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn, v1.NodeSelectorOpExists, v1.NodeSelectorOpDoesNotExist, v1.NodeSelectorOpGt, v1.NodeSelectorOpLt
	term := func(r ...v1.NodeSelectorRequirement) *testkit.PodBuilder { return pod().Require(labels(r...)) }
	rt.Table{Plugin: plugin, Nodes: nodes(), Cases: []rt.Case{
		{Name: "nothing", Pod: pod(), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "affinity of other kinds only", Pod: pod().Together("zone", "app", "web"), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "nodeSelector", Pod: pod().Select("disk", "ssd"), Want: onlyA},
		{Name: "nodeSelector: all of it", Pod: pod().Select("disk", "ssd").Select("cores", "9"), Want: nowhere},
		{Name: "nodeSelector: a label that no node has", Pod: pod().Select("rack", ""), Want: nowhere},
		{Name: "In", Pod: term(expression("disk", in, "nvme", "ssd")), Want: onlyA},
		{Name: "NotIn", Pod: term(expression("disk", notIn, "hdd")), Want: onlyA},
		{Name: "NotIn: without the label", Pod: term(expression("cores", notIn, "8")), Want: rt.Want{"a": selector, "b": rt.OK}},
		{Name: "Exists", Pod: term(expression("cores", exists)), Want: onlyA},
		{Name: "DoesNotExist", Pod: term(expression("cores", absent)), Want: rt.Want{"a": selector, "b": rt.OK}},
		{Name: "Gt", Pod: term(expression("cores", gt, "7")), Want: onlyA},
		{Name: "Gt: not equal", Pod: term(expression("cores", gt, "8")), Want: nowhere},
		{Name: "Lt", Pod: term(expression("cores", lt, "9")), Want: onlyA},
		{Name: "all requirements of a term", Pod: term(expression("disk", in, "ssd"), expression("cores", in, "9")), Want: nowhere},
		{Name: "terms are alternatives", Pod: term(expression("disk", in, "ssd")).Require(labels(expression("disk", in, "hdd"))), Want: rt.Want{rt.All: rt.OK}},
		{Name: "nodeSelector and affinity", Pod: term(expression("disk", in, "ssd", "hdd")).Select("cores", "8"), Want: onlyA},
		{Name: "nodeSelector or affinity isn't met", Pod: term(expression("disk", in, "hdd")).Select("cores", "8"), Want: nowhere},
		{Name: "no terms", Pod: pod().With(func(p *v1.Pod) {
			p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{}}}
		}), Want: nowhere},
		{Name: "an empty term", Pod: pod().Require(v1.NodeSelectorTerm{}), Want: nowhere},
		{Name: "an empty term and another", Pod: pod().Require(v1.NodeSelectorTerm{}).Require(labels(expression("disk", in, "ssd"))), Want: onlyA},
		{Name: "a term that can't be read", Pod: term(expression("disk", "Like", "ssd")), Want: nowhere},
		{Name: "a term that can't be read, and another", Pod: term(expression("disk", "Like", "ssd")).Require(labels(expression("disk", in, "ssd"))), Want: onlyA},
		{Name: "preferences reject nothing", Pod: pod().PreferIn(1, "disk", "ssd"), Want: rt.Want{rt.All: rt.OnlyScores}},
	}}.Filter(t)
}

// Terms over metadata.name narrow the pod to nodes before any rule looks at them.
// People then read that this plugin wasn't satisfied.
func TestByName(t *testing.T) {
	rt.Table{Plugin: plugin, Nodes: nodes(), Cases: []rt.Case{
		{Name: "one", Pod: pod().Require(fields(named("a"))), Want: rt.Want{"a": rt.OK, "b": byName}},
		{Name: "one that isn't there", Pod: pod().Require(fields(named("c"))), Want: rt.Want{rt.All: byName}},
		{Name: "one of two terms", Pod: pod().Require(fields(named("a"))).Require(fields(named("b"))), Want: rt.Want{rt.All: rt.OK}},
		{Name: "one, and labels", Pod: pod().Require(v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{named("b")}, MatchExpressions: []v1.NodeSelectorRequirement{expression("disk", v1.NodeSelectorOpIn, "ssd")}}),
			Want: rt.Want{"a": byName, "b": selector}},
		{Name: "one, and a nodeSelector", Pod: pod().Select("disk", "ssd").Require(fields(named("b"))), Want: rt.Want{"a": byName, "b": selector}},
		{Name: "by name or by label", Pod: pod().Require(fields(named("b"))).Require(labels(expression("disk", v1.NodeSelectorOpIn, "ssd"))), Want: rt.Want{rt.All: rt.OK}},
		{Name: "by name or by a label that nodes lack", Pod: pod().Require(fields(named("b"))).Require(labels(expression("rack", v1.NodeSelectorOpExists))), Want: rt.Want{"a": selector, "b": rt.OK}},
		{Name: "not one", Pod: pod().Require(fields(expression("metadata.name", v1.NodeSelectorOpNotIn, "b"))), Want: onlyA},
		{Name: "one, and not another", Pod: pod().Require(fields(named("a"), expression("metadata.name", v1.NodeSelectorOpNotIn, "b"))), Want: rt.Want{"a": rt.OK, "b": byName}},
		{Name: "a name twice", Pod: pod().Require(fields(named("a"), named("a"))), Want: rt.Want{"a": rt.OK, "b": byName}},
		{Name: "two names at once", Pod: pod().Require(fields(named("a"), named("b"))), Want: rt.Want{rt.All: rt.Everywhere("pod affinity terms conflict")}},
		{Name: "two names at once, or one", Pod: pod().Require(fields(named("a"), named("b"))).Require(fields(named("b"))), Want: rt.Want{"a": byName, "b": rt.OK}},
		{Name: "no name", Pod: pod().Require(fields(named())), Want: rt.Want{rt.All: rt.Everywhere("pod affinity terms conflict")}},
		{Name: "another field", Pod: pod().Require(fields(expression("spec.nodeName", v1.NodeSelectorOpIn, "a"))), Want: nowhere},
		// A list of names in one requirement can't be read, and still narrows.
		{Name: "a list of names", Pod: pod().Require(fields(named("a", "c"))), Want: rt.Want{"a": selector, "b": byName}},
		{Name: "lists of names that share one", Pod: pod().Require(fields(named("c", "a"), named("a", "b"))), Want: rt.Want{"a": selector, "b": byName}},
	}}.Filter(t)
}

// What NodeAffinityArgs.addedAffinity adds to every pod of the profile.
func TestAddedAffinity(t *testing.T) {
	require := func(terms ...v1.NodeSelectorTerm) rt.Make {
		return rt.Is(nodeaffinity.New(&v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: terms}}))
	}
	prefer := rt.Is(nodeaffinity.New(&v1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{Weight: 4, Preference: labels(expression("cores", v1.NodeSelectorOpExists))}}}))
	ssd := labels(expression("disk", v1.NodeSelectorOpIn, "ssd"))
	rt.Table{Plugin: require(ssd), Nodes: nodes(), Cases: []rt.Case{
		{Name: "a pod that requires nothing", Pod: pod(), Want: rt.Want{"a": rt.OK, "b": enforced}},
		{Name: "and its own", Pod: pod().Select("cores", "9"), Want: rt.Want{"a": selector, "b": enforced}},
		{Name: "the profile speaks first", Pod: pod().Select("disk", "nvme"), Want: rt.Want{"a": selector, "b": enforced}},
		{Name: "names speak before it", Pod: pod().Require(fields(named("a"))), Want: rt.Want{"a": rt.OK, "b": byName}},
		{Name: "by name", Plugin: require(fields(named("b"))), Pod: pod(), Want: rt.Want{"a": enforced, "b": rt.OK}},
		{Name: "one that can't be read is left out", Plugin: require(labels(expression("disk", "Like", "x"))), Pod: pod(), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "empty", Plugin: rt.Is(nodeaffinity.New(&v1.NodeAffinity{})), Pod: pod(), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "preferred", Plugin: prefer, Pod: pod(), Want: rt.Want{rt.All: rt.OnlyScores}},
	}}.Filter(t)
	rt.Table{Plugin: prefer, Nodes: nodes(), Cases: []rt.Case{
		{Name: "a pod that prefers nothing", Pod: pod(), Want: rt.Want{"a": "100 raw 4", "b": "0 raw 0"}},
		{Name: "weights add up", Pod: pod().PreferIn(1, "disk", "ssd").PreferIn(2, "disk", "hdd"), Want: rt.Want{"a": "100 raw 5", "b": "40 raw 2"}},
	}}.Score(t)
}

// A raw score is the sum of the weights of the terms that the node meets; the
// highest of any feasible node becomes 100.
func TestPreferred(t *testing.T) {
	in := v1.NodeSelectorOpIn
	rt.Table{Plugin: plugin, Nodes: append(nodes(), testkit.Node("c")), Cases: []rt.Case{
		{Name: "nothing", Pod: pod(), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "one term", Pod: pod().PreferIn(5, "disk", "ssd"), Want: rt.Want{"a": "100 raw 5", rt.All: "0 raw 0"}},
		{Name: "no node meets it", Pod: pod().PreferIn(5, "disk", "nvme"), Want: rt.Want{rt.All: "0 raw 0"}},
		{Name: "all nodes meet it", Pod: pod().Prefer(5, labels(expression("rack", v1.NodeSelectorOpDoesNotExist))), Want: rt.Want{rt.All: "100 raw 5"}},
		{Name: "two terms", Pod: pod().PreferIn(3, "disk", "ssd", "hdd").PreferIn(2, "cores", "8"), Want: rt.Want{"a": "100 raw 5", "b": "60 raw 3", "c": "0 raw 0"}},
		{Name: "cut, not rounded", Pod: pod().PreferIn(2, "disk", "ssd", "hdd").PreferIn(1, "cores", "8"), Want: rt.Want{"a": "100 raw 3", "b": "66 raw 2", "c": "0 raw 0"}},
		{Name: "by name", Pod: pod().Prefer(5, fields(named("b"))), Want: rt.Want{"b": "100 raw 5", rt.All: "0 raw 0"}},
		{Name: "nodes that can't take the pod don't normalise", Pod: pod().PreferIn(3, "disk", "ssd", "hdd").PreferIn(2, "cores", "8"), Elsewhere: []string{"a"}, Want: rt.Want{"b": "100 raw 3", "c": "0 raw 0"}},
		{Name: "nor do those that it isn't allowed on", Pod: pod().PreferIn(3, "disk", "ssd", "hdd").PreferIn(2, "cores", "8").Select("disk", "hdd"), Want: rt.Want{"b": "100 raw 3", rt.All: selector}},
		{Name: "required terms aren't scored", Pod: pod().Select("disk", "ssd"), Want: rt.Want{"a": "0", rt.All: selector}},
		{Name: "an empty term counts for nothing", Pod: pod().Prefer(5, v1.NodeSelectorTerm{}), Want: rt.Want{rt.All: "0 raw 0"}},
		{Name: "a term that can't be read: nothing is scored", Pod: pod().Select("disk", "ssd").Prefer(5, labels(expression("disk", "Like", "ssd"))).Prefer(5, labels(expression("disk", in, "ssd"))), Want: rt.Want{"a": "0", rt.All: selector}},
	}}.Score(t)
}

func TestSignature(t *testing.T) {
	base := func() *testkit.PodBuilder {
		return pod().Select("disk", "ssd").Require(labels(expression("cores", v1.NodeSelectorOpIn, "8", "16"))).Prefer(5, labels(expression("rack", v1.NodeSelectorOpIn, "r")))
	}
	required := func(p *testkit.PodBuilder) *v1.NodeSelector {
		return p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	preferred := func(p *testkit.PodBuilder) *v1.PreferredSchedulingTerm {
		return &p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0]
	}
	rt.Signatures{Plugin: plugin, Pod: base, Cases: []rt.Change{
		rt.Differs("name, label, request", func(p *testkit.PodBuilder) { p.Name = "q"; p.Label("app", "web").Req("cpu", "1") }, rt.Same),
		rt.Differs("pod affinity", func(p *testkit.PodBuilder) { p.Together("zone", "app", "web") }, rt.Same),
		rt.Differs("nodeSelector: value", func(p *testkit.PodBuilder) { p.Select("disk", "hdd") }, rt.Local),
		rt.Differs("nodeSelector: key", func(p *testkit.PodBuilder) { p.Spec.NodeSelector = map[string]string{"kind": "ssd"} }, rt.Local),
		rt.Differs("nodeSelector: one more", func(p *testkit.PodBuilder) { p.Select("zone", "a") }, rt.Local),
		rt.Differs("nodeSelector: none", func(p *testkit.PodBuilder) { p.Spec.NodeSelector = nil }, rt.Local),
		rt.Differs("required: key", func(p *testkit.PodBuilder) { required(p).NodeSelectorTerms[0].MatchExpressions[0].Key = "x" }, rt.Local),
		rt.Differs("required: operator", func(p *testkit.PodBuilder) {
			required(p).NodeSelectorTerms[0].MatchExpressions[0].Operator = v1.NodeSelectorOpNotIn
		}, rt.Local),
		rt.Differs("required: value", func(p *testkit.PodBuilder) {
			required(p).NodeSelectorTerms[0].MatchExpressions[0].Values = []string{"8", "9"}
		}, rt.Local),
		rt.Differs("required: fields in place of labels", func(p *testkit.PodBuilder) {
			term := &required(p).NodeSelectorTerms[0]
			term.MatchFields, term.MatchExpressions = term.MatchExpressions, nil
		}, rt.Local),
		rt.Differs("required: one more term", func(p *testkit.PodBuilder) { p.Require(v1.NodeSelectorTerm{}) }, rt.Local),
		rt.Differs("required: requirements of one term in two", func(p *testkit.PodBuilder) {
			p.Require(labels(expression("cores", v1.NodeSelectorOpIn, "8", "16")))
		}, rt.Local),
		rt.Differs("required: none", func(p *testkit.PodBuilder) {
			p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
		}, rt.Local),
		rt.Differs("preferred: weight", func(p *testkit.PodBuilder) { preferred(p).Weight = 6 }, rt.Local),
		rt.Differs("preferred: key", func(p *testkit.PodBuilder) { preferred(p).Preference.MatchExpressions[0].Key = "x" }, rt.Local),
		rt.Differs("preferred: one more", func(p *testkit.PodBuilder) { p.PreferIn(5, "rack", "r") }, rt.Local),
		rt.Differs("preferred: none", func(p *testkit.PodBuilder) {
			p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = nil
		}, rt.Local),
	}}.Run(t)
	// Values that read like the next requirement are values.
	rt.Signatures{Plugin: plugin, Pod: func() *testkit.PodBuilder {
		return pod().Require(labels(expression("k", v1.NodeSelectorOpIn, "a"), expression("k", v1.NodeSelectorOpIn, "b", "k", "In", "c")))
	}, Cases: []rt.Change{
		rt.Differs("required: the same texts, parted otherwise", func(p *testkit.PodBuilder) {
			required(p).NodeSelectorTerms[0].MatchExpressions = []v1.NodeSelectorRequirement{expression("k", v1.NodeSelectorOpIn, "a", "k", "In", "b"), expression("k", v1.NodeSelectorOpIn, "c")}
		}, rt.Local),
	}}.Run(t)
	// No terms allow no node, no affinity allows all.
	rt.Signatures{Plugin: plugin, Pod: pod, Cases: []rt.Change{
		rt.Differs("required: a list of no terms", func(p *testkit.PodBuilder) {
			p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{}}}
		}, rt.Local),
		rt.Differs("an empty affinity", func(p *testkit.PodBuilder) { p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{}} }, rt.Same),
	}}.Run(t)
}

// The selector that other plugins sign with, in whatever order the map is walked.
func TestSignSelectorHasAnOrder(t *testing.T) {
	schema := cluster.NewSchema()
	sign := func() string {
		b := pod()
		for _, k := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			b.Select(k, "v")
		}
		var sig framework.Signature
		nodeaffinity.SignRequired(schema.ParsePod(b.Obj()), &sig)
		return string(sig.Bytes())
	}
	first := sign()
	for range 20 {
		if again := sign(); again != first {
			t.Fatal("one nodeSelector is signed in two ways")
		}
	}
}

func TestRestricts(t *testing.T) {
	for _, c := range []struct {
		name string
		pod  *testkit.PodBuilder
		want bool
	}{
		{"nothing", pod(), false},
		{"nodeSelector", pod().Select("disk", "ssd"), true},
		{"required", pod().RequireIn("disk", "ssd"), true},
		{"preferred", pod().PreferIn(1, "disk", "ssd"), false},
	} {
		if got := nodeaffinity.Restricts(cluster.NewSchema().ParsePod(c.pod.Obj())); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
