package engine_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestABudgetChangesWhoGoes asks twice, with the answer kept in between.
func TestABudgetChangesWhoGoes(t *testing.T) {
	schema := cluster.NewSchema()
	s := cluster.New(schema)
	e := testkit.Must(engine.New(s, plugins.Default(schema, plugins.Options{}), engine.Options{}))
	s.SetNode(schema.ParseNode(testkit.Node("n1").Alloc("cpu", "4", "memory", "4Gi").Obj(), ""))
	for i, name := range []string{"old", "new"} {
		p := testkit.Pod(name).Label("app", name).Req("cpu", "2")
		at := metav1.Unix(int64(i), 0)
		p.Status.StartTime = &at
		s.Place(schema.ParsePod(p.Obj()), "n1")
	}
	c := e.Class(schema.ParsePod(testkit.Pod("vip").Priority(10).Req("cpu", "2").Obj()))
	budget := func(allowed int32) {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "new"}}
		b.Status.DisruptionsAllowed = allowed
		s.SetObject(b)
	}
	for _, x := range []struct {
		set  func()
		want string
	}{
		{func() {}, "[default/new]"},
		{func() { budget(0) }, "[default/old]"},
		{func() { budget(1) }, "[default/new]"},
		{func() { budget(0) }, "[default/old]"},
		{func() { s.RemoveObject(cluster.BudgetKind, "default", "b") }, "[default/new]"},
	} {
		x.set()
		best, ok := e.Preempt(c)
		var names []string
		for _, p := range best.Pods {
			names = append(names, p.Name())
		}
		if got := fmt.Sprint(names); !ok || got != x.want {
			t.Errorf("victims %s, want %s", got, x.want)
		}
	}
}

// TestABudgetsStatusConcernsItsNodes counts the dry runs that are made again after a change of a
// budget: preemptions of one moment change one after the other.
func TestABudgetsStatusConcernsItsNodes(t *testing.T) {
	schema := cluster.NewSchema()
	s := cluster.New(schema)
	e := testkit.Must(engine.New(s, plugins.Default(schema, plugins.Options{}), engine.Options{}))
	for i, name := range testkit.Names("n", 100) {
		s.SetNode(schema.ParseNode(testkit.Node(name).Alloc("cpu", "4", "memory", "4Gi").Obj(), ""))
		s.Place(schema.ParsePod(testkit.Pod("p-"+name).Label("app", fmt.Sprint("a", i%50)).Req("cpu", "4").Obj()), name)
	}
	c := e.Class(schema.ParsePod(testkit.Pod("vip").Priority(10).Req("cpu", "2").Obj()))
	s.SetObject(testkit.Budget("b", 1, "app", "a7"))
	for _, x := range []struct {
		name   string
		budget *policyv1.PodDisruptionBudget
		want   int
	}{
		{"another status", testkit.Budget("b", 0, "app", "a7"), 2},
		{"other pods", testkit.Budget("b", 0, "app", "a8"), 100},
		{"another budget", testkit.Budget("c", 0, "app", "a9"), 100},
	} {
		e.Preempt(c)
		s.SetObject(x.budget)
		if got := e.UnknownDryRuns(c); got != x.want {
			t.Errorf("%s: %d dry runs are made again, want %d", x.name, got, x.want)
		}
	}
}

// TestWhoGoes has as few pods go as possible: all of lower priority leave, and come
// back in the order of their importance as long as the pod still fits.
func TestWhoGoes(t *testing.T) {
	for _, c := range []struct {
		name   string
		placed []*testkit.PodBuilder
		want   string // of the pods on a node of 4 CPUs, for one that asks for 2
	}{
		{"one of two equals", []*testkit.PodBuilder{running("a", "2", 0, "n1"), running("b", "2", 5, "n1")}, "[default/a]"},
		{"a large one, though it is more important than a small one that may stay",
			[]*testkit.PodBuilder{running("large", "3", 5, "n1"), running("small", "1", 0, "n1")}, "[default/large]"},
		{"both, when neither may stay", []*testkit.PodBuilder{running("a", "3", 5, "n1"), running("b", "2500m", 0, "n1")}, "[default/a default/b]"},
		{"nobody of equal priority", []*testkit.PodBuilder{running("equal", "2", 10, "n1"), running("low", "2", 0, "n1")}, "[default/low]"},
		{"nobody, when that isn't enough", []*testkit.PodBuilder{running("equal", "3", 10, "n1"), running("low", "1", 0, "n1")}, "[]"},
		{"nobody, when it fits", []*testkit.PodBuilder{running("low", "1", 0, "n1")}, "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := wait(testkit.Pod("vip").Priority(10).Req("cpu", "2"), []*testkit.NodeBuilder{four("n1")}, c.placed...)
			before := dump(w.State)
			names := []string{}
			if best, ok := w.engine.Preempt(w.class); ok {
				for _, p := range best.Pods {
					names = append(names, p.Name())
				}
			}
			if got := fmt.Sprint(names); got != c.want {
				t.Errorf("victims %s, want %s", got, c.want)
			}
			if after := dump(w.State); after != before {
				t.Errorf("the dry run has changed the state from\n%s to\n%s", before, after)
			}
		})
	}
}

// Who has to leave one node of 4 CPUs for a pod of priority 10: all pods of lower priority
// leave, and come back in the order of their priority as far as the pod still fits.
func TestVictimsAreThePodsThatCantComeBack(t *testing.T) {
	type pod struct {
		name, cpu string
		priority  int32
	}
	for _, c := range []struct {
		name     string
		on       []pod
		cpu      string   // that the pod asks for
		required []string // nodes that it is required to be on, by name
		budget   string   // the pod that a budget without room selects
		want     string   // victims with budgets violated; "" when preemption doesn't help
		why      string   // as the message has it when preemption doesn't help
	}{
		{"the least important goes", []pod{{"a", "2", 1}, {"b", "1", 2}, {"c", "1", 3}}, "2", nil, "", "[a] 0", ""},
		{"a pod that doesn't fit back makes room for those after it", []pod{{"big", "3", 3}, {"small", "1", 2}}, "2", nil, "", "[big] 0", ""},
		{"all go, the most important first", []pod{{"a", "1", 1}, {"b", "1", 2}, {"c", "2", 3}}, "4", nil, "", "[c b a] 0", ""},
		{"a protected pod comes back first", []pod{{"a", "2", 1}, {"b", "2", 2}}, "2", nil, "a", "[b] 0", ""},
		{"a protected pod that goes is a violation", []pod{{"a", "2", 1}, {"b", "2", 2}}, "4", nil, "a", "[b a] 1", ""},
		{"equal priority stays", []pod{{"a", "2", 1}, {"b", "2", 10}}, "2", nil, "", "[a] 0", ""},
		{"equal priority is in the way", []pod{{"a", "1", 1}, {"b", "3", 10}}, "2", nil, "", "", "Insufficient cpu"},
		{"nobody of lower priority", []pod{{"b", "4", 10}}, "2", nil, "", "", "No preemption victims found"},
		{"no pod is in the way", []pod{{"a", "1", 1}}, "2", []string{"other"}, "", "", "Preemption is not helpful"},
		{"the node is too small", []pod{{"a", "1", 1}}, "5", nil, "", "", "Preemption is not helpful"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := nodes(testkit.Node("n1").Alloc("cpu", "4", "memory", "4Gi"))
			e := testkit.Must(engine.New(s, plugins.Default(s.Schema, plugins.Options{}), engine.Options{}))
			for _, p := range c.on {
				s.Place(parsed(s, testkit.Pod(p.name).Label("app", p.name).Req("cpu", p.cpu).Priority(p.priority)), "n1")
			}
			s.Place(parsed(s, testkit.Pod("elsewhere").Priority(-1)), "gone") // so that there is a pod of lower priority
			if c.budget != "" {
				b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}
				b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": c.budget}}
				s.SetObject(b)
			}
			vip := testkit.Pod("vip").Priority(10).Req("cpu", c.cpu)
			if c.required != nil {
				vip.RequireIn(v1.LabelHostname, c.required...)
			}
			class, before := e.Class(parsed(s, vip)), dump(s)
			got := ""
			for _, x := range e.Candidates(class) {
				names := []string{}
				for _, p := range x.Pods {
					names = append(names, p.Object.Name)
				}
				got += fmt.Sprint(names, " ", x.Violations)
			}
			if got != c.want {
				t.Errorf("victims %s, want %s", got, c.want)
			}
			if _, ok := e.Preempt(class); ok != (c.want != "") {
				t.Errorf("preempts %v, want %v", ok, c.want != "")
			}
			if why := e.PreemptionMessage(class); !strings.Contains(why, c.why) {
				t.Errorf("preemption doesn't help since %q, want %q", why, c.why)
			}
			if after := dump(s); after != before {
				t.Errorf("the questions changed the state:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
}

func TestPodsThatNeverPreemptDont(t *testing.T) {
	s := nodes(testkit.Node("n1").Alloc("cpu", "4", "memory", "4Gi"))
	s.Place(parsed(s, testkit.Pod("low").Req("cpu", "4")), "n1")
	vip := testkit.Pod("vip").Priority(10).Req("cpu", "4")
	never := v1.PreemptNever
	vip.Spec.PreemptionPolicy = &never
	for _, c := range []struct {
		name    string
		options plugins.Options
		pod     *testkit.PodBuilder
		want    bool
	}{
		{"it may", plugins.Options{}, testkit.Pod("vip").Priority(10).Req("cpu", "4"), true},
		{"its policy is Never", plugins.Options{}, vip, false},
		{"the profile has no preemption", plugins.Options{NoPreemption: true}, testkit.Pod("vip").Priority(10).Req("cpu", "4"), false},
		{"its priority is no higher", plugins.Options{}, testkit.Pod("p").Req("cpu", "4"), false},
	} {
		e := testkit.Must(engine.New(s, plugins.Default(s.Schema, c.options), engine.Options{}))
		class := e.Class(parsed(s, c.pod))
		best, ok := e.Preempt(class)
		if ok != c.want || (best.Node != cluster.NoNode) != c.want || (len(e.Candidates(class)) > 0) != c.want {
			t.Errorf("%s: preempts %v on %d, want %v", c.name, ok, best.Node, c.want)
		}
	}
}

// The best candidate is the cheapest; of equally cheap ones, the one of the highest rank,
// as a best node would be. Cheapest says the same of a list as Preempt of all.
func TestPropertyPreemptTakesTheCheapestCandidate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "nodes")
		s := nodes()
		for i := range n {
			name := fmt.Sprint("n", i)
			s.SetNode(s.Schema.ParseNode(testkit.Node(name).Alloc("cpu", "4", "memory", "4Gi").Obj(), ""))
			s.Place(parsed(s, testkit.Pod("low-"+name).Req("cpu", "4").Priority(int32(rapid.IntRange(0, 2).Draw(t, "priority")))), name)
		}
		profile := plugins.Default(s.Schema, plugins.Options{})
		e := testkit.Must(engine.New(s, profile, engine.Options{Seed: rapid.Uint64().Draw(t, "seed")}))
		class := e.Class(parsed(s, testkit.Pod("vip").Priority(10).Req("cpu", "4")))
		list := e.Candidates(class)
		best, ok := e.Preempt(class)
		if !ok || len(list) != n {
			t.Fatalf("%d candidates of %d nodes, preempts %v", len(list), n, ok)
		}
		cost := profile.Preempter.Cost(&best.Victims)
		for _, x := range list {
			if c := profile.Preempter.Cost(&x.Victims); c.Compare(&cost) < 0 {
				t.Fatalf("node %d costs %v, and %d was chosen for %v", x.Node, c, best.Node, cost)
			}
		}
		shuffled := rapid.Permutation(list).Draw(t, "order")
		if got, ok := e.Cheapest(class, shuffled); !ok || got.Node != best.Node {
			t.Fatalf("the cheapest of the candidates is %d, %v; Preempt says %d", got.Node, ok, best.Node)
		}
	})
}

func TestNothingIsCheapestOfNothing(t *testing.T) {
	s := named("n0")
	e := testkit.Must(engine.New(s, plugins.Default(s.Schema, plugins.Options{}), engine.Options{}))
	if _, ok := e.Cheapest(e.Class(parsed(s, testkit.Pod("p"))), nil); ok {
		t.Error("there is a cheapest of no candidates")
	}
}

// BenchmarkPreempt measures who would have to go, for a class that asks again
// after one node was touched, and for one that asks for the first time.
func BenchmarkPreempt(b *testing.B) {
	for _, first := range []bool{false, true} {
		b.Run(fmt.Sprintf("first=%v", first), func(b *testing.B) {
			schema := cluster.NewSchema()
			s := cluster.New(schema)
			e := testkit.Must(engine.New(s, plugins.Default(schema, plugins.Options{}), engine.Options{}))
			for i := range 5000 {
				name := fmt.Sprint("n", i)
				s.SetNode(schema.ParseNode(testkit.Node(name).Alloc("cpu", "4", "memory", "32Gi").Obj(), ""))
				for k := range 4 {
					s.Place(schema.ParsePod(testkit.Pod(fmt.Sprint("low", i, "-", k)).Req("cpu", "900m", "memory", "500Mi").Obj()), name)
				}
			}
			vip := func(i int) *engine.Class {
				return e.Class(schema.ParsePod(testkit.Pod("vip").Priority(10).Req("cpu", "3", "memory", fmt.Sprint(500+i, "Mi")).Obj()))
			}
			c := vip(0)
			e.Preempt(c)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				p := s.Node(cluster.NodeIndex(i % 5000)).Pods[0]
				s.Remove(p.UID)
				s.PlaceAt(p, cluster.NodeIndex(i%5000))
				if first {
					c = vip(i)
				}
				if _, ok := e.Preempt(c); !ok {
					b.Fatal("nobody would have to go")
				}
				if i%1000 == 0 {
					s.Trim(s.Head() - 100)
				}
			}
		})
	}
}
