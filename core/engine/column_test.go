package engine_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/internal/test/testkit"
)

// What a column evaluates: five nodes, one rule that reads only their objects and one
// that reads their pods. A question after each change says which nodes either rule was
// asked about.
func TestColumnsEvaluateTouchedNodesOnly(t *testing.T) {
	const all = "n0 n1 n2 n3 n4"
	pod := func(s *cluster.State, name string) *cluster.Pod { return parsed(s, testkit.Pod(name)) }
	churn := func(changes int) func(*cluster.State, func()) { // of pods on n1
		return func(s *cluster.State, _ func()) {
			for range changes / 2 {
				s.Place(pod(s, "p"), "n1")
				s.Remove("pod-p")
			}
		}
	}
	for _, c := range []struct {
		name          string
		change        func(s *cluster.State, ask func())
		objects, pods string
	}{
		{"nothing", func(*cluster.State, func()) {}, "", ""},
		{"a pod comes", func(s *cluster.State, _ func()) { s.Place(pod(s, "p"), "n1") }, "", "n1"},
		{"two pods come to one node", func(s *cluster.State, _ func()) {
			s.Place(pod(s, "p"), "n1")
			s.Place(pod(s, "q"), "n1")
		}, "", "n1"},
		{"a pod moves", func(s *cluster.State, ask func()) {
			s.Remove("pod-there")
			s.Place(pod(s, "there"), "n4")
		}, "", "n0 n4"},
		{"a node changes", func(s *cluster.State, _ func()) {
			s.SetNode(s.Schema.ParseNode(testkit.Node("n2").Label("a", "b").Obj(), ""))
		}, "n2", "n2"},
		{"a node changes and a pod comes to it", func(s *cluster.State, _ func()) {
			s.Place(pod(s, "p"), "n2")
			s.SetNode(s.Schema.ParseNode(testkit.Node("n2").Label("a", "b").Obj(), ""))
		}, "n2", "n2"},
		{"a node changes, and a pod comes to another one", func(s *cluster.State, _ func()) {
			s.SetNode(s.Schema.ParseNode(testkit.Node("n2").Label("a", "b").Obj(), ""))
			s.Place(pod(s, "p"), "n1")
		}, "n2", "n1 n2"},
		{"a node comes", func(s *cluster.State, _ func()) { s.SetNode(s.Schema.ParseNode(testkit.Node("n5").Obj(), "")) }, "n5", "n5"},
		{"a node goes", func(s *cluster.State, _ func()) { s.RemoveNode("n3") }, "", ""},
		{"a node goes and comes back", func(s *cluster.State, _ func()) {
			s.RemoveNode("n3")
			s.SetNode(s.Schema.ParseNode(testkit.Node("n3").Obj(), ""))
		}, "n3", "n3"},
		{"an object that rules may read of a node", func(s *cluster.State, _ func()) { s.SetObject(csiNode("n3", 1)) }, "n3", "n3"},
		{"an object elsewhere", func(s *cluster.State, _ func()) {
			s.SetObject(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
		}, "", ""},
		{"a what-if without a question", func(s *cluster.State, _ func()) {
			m := s.Mark()
			s.Place(pod(s, "p"), "n1")
			s.Rollback(m)
		}, "", ""},
		{"a what-if with a question", func(s *cluster.State, ask func()) {
			m := s.Mark()
			s.Place(pod(s, "p"), "n1")
			ask()
			s.Rollback(m)
		}, "n1", "n1"},
		{"a what-if, of which a question saw half", func(s *cluster.State, ask func()) {
			m := s.Mark()
			s.Place(pod(s, "p"), "n1")
			ask()
			s.Place(pod(s, "q"), "n2")
			s.Rollback(m)
		}, "n1", "n1"},
		{"a what-if with a node that was never there", func(s *cluster.State, ask func()) {
			m := s.Mark()
			s.SetNode(s.Schema.ParseNode(testkit.Node("n5").Obj(), ""))
			ask()
			s.Rollback(m)
		}, "", ""},
		{"a change before a what-if, and one after it to the same node", func(s *cluster.State, ask func()) {
			s.Place(pod(s, "p"), "n1")
			m := s.Mark()
			s.Place(pod(s, "q"), "n1")
			ask()
			s.Rollback(m)
			s.Place(pod(s, "r"), "n1")
		}, "n1", "n1"},
		{"more changes than the journal keeps", func(s *cluster.State, _ func()) {
			s.Place(pod(s, "p"), "n1")
			s.Trim(s.Head())
		}, all, all},
		{"as many changes as are worth following", churn(16*5 + 1024), "", "n1"},
		{"more changes than are worth following", churn(16*5 + 1024 + 2), all, all},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := named("n0", "n1", "n2", "n3", "n4")
			s.Place(pod(s, "there"), "n0")
			objects, pods := &localScript{reads: framework.ReadsObject}, &localScript{reads: framework.ReadsPods}
			e := over(s, &scripted{name: "Objects", rules: framework.Rules{Local: objects}}, &scripted{name: "Pods", rules: framework.Rules{Local: pods}})
			class := e.Class(pod(s, "subject"))
			clear := func() {
				e.Best(class)
				objects.evaluated()
				pods.evaluated()
			}
			e.Best(class)
			if o, p := objects.evaluated(), pods.evaluated(); o != all || p != all {
				t.Errorf("at first: evaluated objects %q and pods %q, want both of all nodes", o, p)
			}
			c.change(s, clear)
			e.Best(class)
			if o, p := objects.evaluated(), pods.evaluated(); o != c.objects || p != c.pods {
				t.Errorf("evaluated objects %q and pods %q, want %q and %q", o, p, c.objects, c.pods)
			}
		})
	}
}

// A rule isn't asked about a node that a rule before it rejects. Objects come first,
// since their answers are kept.
func TestRulesAreNotAskedAboutRejectedNodes(t *testing.T) {
	s := named("n0", "n1", "n2")
	first := &localScript{reads: framework.ReadsPods, scores: map[string]int64{"n0": 1, "n1": 1}}
	second := &localScript{reads: framework.ReadsPods}
	object := &localScript{reads: framework.ReadsObject, scores: map[string]int64{"n1": 1, "n2": 1}}
	e := over(s, &scripted{rules: framework.Rules{Local: first}}, &scripted{rules: framework.Rules{Local: second}}, &scripted{rules: framework.Rules{Local: object}})
	e.Best(e.Class(parsed(s, testkit.Pod("p"))))
	if o, f, g := object.evaluated(), first.evaluated(), second.evaluated(); o != "n0 n1 n2" || f != "n1 n2" || g != "n1" {
		t.Errorf("evaluated: object %q, first %q, second %q; want n0 n1 n2, n1 n2 and n1", o, f, g)
	}
}

// Classes of equal local signature share a column, if their group rules group alike.
func TestClassesOfEqualLocalSignatureAreEvaluatedOnce(t *testing.T) {
	for _, c := range []struct {
		name    string
		asLocal bool
		want    string
	}{{"differ in what is signed as group", false, ""}, {"differ in what is signed as local", true, "n0 n1"}} {
		s := named("n0", "n1")
		local := &localScript{reads: framework.ReadsPods}
		e := over(s, &scripted{name: "A", rules: framework.Rules{Local: local}, sign: signsLabel("app", c.asLocal)})
		one, other := e.Class(parsed(s, testkit.Pod("p").Label("app", "web"))), e.Class(parsed(s, testkit.Pod("q").Label("app", "db")))
		if one == other {
			t.Errorf("%s: one class, want two", c.name)
		}
		e.Best(one)
		local.evaluated()
		e.Best(other)
		if got := local.evaluated(); got != c.want {
			t.Errorf("%s: the second class evaluated %q, want %q", c.name, got, c.want)
		}
		if e.Class(parsed(s, testkit.Pod("r").Label("app", "web"))) != one || e.Size().Classes != 2 {
			t.Errorf("%s: a pod like the first is of another class, of %d", c.name, e.Size().Classes)
		}
	}
}

// perClass is a plugin whose rules depend on a label that it signs.
type perClass struct {
	scripted
	label        string
	rulesByLabel map[string]framework.Rules
}

func (p *perClass) For(pod *cluster.Pod, _ *cluster.State) (framework.Rules, *framework.Reason) {
	return p.rulesByLabel[pod.Object.Labels[p.label]], nil
}

// Two classes may sign the same bytes as local, each another plugin's. Their columns are
// two.
func TestColumnsAreSharedByPluginNotByBytes(t *testing.T) {
	s := named("n0", "n1")
	plugin := func(label, node string) framework.Plugin {
		p := &perClass{label: label, rulesByLabel: map[string]framework.Rules{"x": {Local: &localScript{reads: framework.ReadsObject, scores: map[string]int64{node: 1}}}}}
		p.name, p.sign = label, func(pod *cluster.Pod, local, _ *framework.Signature) {
			if v, ok := pod.Object.Labels[label]; ok {
				local.Str(v)
			}
		}
		return p
	}
	e := over(s, plugin("a", "n0"), plugin("b", "n1"))
	for label, want := range map[string]string{"a": "n0", "b": "n1"} {
		best, _ := e.Best(e.Class(parsed(s, testkit.Pod("p").Label(label, "x"))))
		if got := nodeName(s, best.Node); got != want {
			t.Errorf("the pod with label %s goes to %s, want %s, the only node that its rule takes", label, got, want)
		}
	}
}

// Two classes of equal local signature whose group rules look at other topologies, or of
// other plugins, don't share groups.
func TestColumnsAreSharedByKindOfGroupRule(t *testing.T) {
	s := nodes(testkit.Node("n0").Zone("a").Label("rack", "1"), testkit.Node("n1").Zone("b").Label("rack", "1"), testkit.Node("n2").Zone("b").Label("rack", "2"))
	rule := func(key, value string) framework.Rules {
		return framework.Rules{Group: &groupScript{state: s, key: key, scores: map[string]int64{value: 9}}}
	}
	plugin := func(label string, of map[string]framework.Rules) framework.Plugin {
		return &perClass{scripted: scripted{name: label, sign: signsLabel(label, false)}, label: label, rulesByLabel: of}
	}
	e := over(s,
		plugin("one", map[string]framework.Rules{"zone": rule(v1.LabelTopologyZone, "a"), "rack": rule("rack", "2")}),
		plugin("two", map[string]framework.Rules{"rack": rule("rack", "2"), "zone": rule(v1.LabelTopologyZone, "b")}))
	for _, c := range []struct {
		pod   *testkit.PodBuilder
		want  string
		score int64
	}{
		{testkit.Pod("p").Label("one", "zone"), "n0", 9},
		{testkit.Pod("p").Label("one", "rack"), "n2", 9},
		{testkit.Pod("p").Label("two", "rack"), "n2", 9},
		{testkit.Pod("p").Label("one", "rack").Label("two", "zone"), "n2", 18},
	} {
		best, _ := e.Best(e.Class(parsed(s, c.pod)))
		if got := nodeName(s, best.Node); got != c.want || best.Score != c.score {
			t.Errorf("pod with labels %v goes to %s with %d, want %s with %d", c.pod.Labels, got, best.Score, c.want, c.score)
		}
	}
}

func TestRebuiltEvaluatesEverythingEachTime(t *testing.T) {
	s := named("n0", "n1")
	local := &localScript{reads: framework.ReadsPods}
	profile := &framework.Profile{Plugins: []framework.Weighted{weighted(1, &scripted{rules: framework.Rules{Local: local}})}}
	e := testkit.Must(engine.New(s, profile, engine.Options{Rebuilt: true}))
	class := e.Class(parsed(s, testkit.Pod("p")))
	for range 2 {
		e.Best(class)
		if got := local.evaluated(); got != "n0 n1" {
			t.Errorf("evaluated %q, want n0 n1", got)
		}
	}
}
