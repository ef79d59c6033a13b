package engine_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins/defaultpreemption"
	"github.com/berthproject/berth/internal/test/testkit"
)

// preempting returns an engine under which a node takes one pod, with a low pod on each
// node, and the rule, which notes the nodes that a dry run filters. beyond adds a group
// rule that filters.
func preempting(beyond bool, names ...string) (*cluster.State, *engine.Engine, *localScript) {
	s := named(names...)
	for _, name := range names {
		s.Place(parsed(s, testkit.Pod("low-"+name)), name)
	}
	local := &localScript{reads: framework.ReadsPods, limit: 1}
	rules := framework.Rules{Local: local}
	if beyond {
		rules.Group = &groupScript{state: s, key: v1.LabelHostname, rejects: map[string]bool{"nowhere": true}}
	}
	profile := &framework.Profile{Preempter: defaultpreemption.Plugin{},
		Plugins: []framework.Weighted{weighted(1, &scripted{name: "A", rules: rules, sign: signsLabel("app", false)})}}
	return s, testkit.Must(engine.New(s, profile, engine.Options{})), local
}

// ran returns the nodes that were filtered since the last call, each once.
func (r *localScript) ran() string {
	seen, out := map[string]bool{}, ""
	for _, name := range r.asked {
		if !seen[name] {
			seen[name] = true
			out += name
		}
	}
	r.asked = nil
	return out
}

// What a dry run has found is kept until a change may have made it another. n0, n1 and n2
// each hold a low pod.
func TestDryRunsAreKeptUntilAChangeMayCount(t *testing.T) {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}
	for _, c := range []struct {
		name   string
		change func(s *cluster.State, ask func())
		local  string // nodes filtered for a class with local rules only
		beyond string // and for one with a group rule that filters
	}{
		{"nothing", func(*cluster.State, func()) {}, "", ""},
		{"a pod comes", func(s *cluster.State, _ func()) { s.Place(parsed(s, testkit.Pod("p")), "n1") }, "n1", "n0n1n2"},
		{"a node changes", func(s *cluster.State, _ func()) {
			s.SetNode(s.Schema.ParseNode(testkit.Node("n2").Label("a", "b").Obj(), ""))
		}, "n2", "n0n1n2"},
		{"a node comes, without pods that could leave", func(s *cluster.State, _ func()) {
			s.SetNode(s.Schema.ParseNode(testkit.Node("n3").Obj(), ""))
		}, "", "n0n1n2"},
		{"a pod is nominated", func(s *cluster.State, _ func()) { s.Nominate(parsed(s, testkit.Pod("p").Priority(5)), "n1") }, "n1", "n1"},
		{"a budget changes", func(s *cluster.State, _ func()) { s.SetObject(budget) }, "n0n1n2", "n0n1n2"},
		{"a budget goes", func(s *cluster.State, ask func()) {
			s.SetObject(budget)
			ask()
			s.RemoveObject(cluster.BudgetKind, "default", "b")
		}, "n0n1n2", "n0n1n2"},
		{"another object changes", func(s *cluster.State, _ func()) {
			s.SetObject(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
		}, "", "n0n1n2"},
		{"a what-if without a question", func(s *cluster.State, _ func()) {
			m := s.Mark()
			s.Place(parsed(s, testkit.Pod("p")), "n1")
			s.Rollback(m)
		}, "", ""},
		{"a what-if with a question", func(s *cluster.State, ask func()) {
			m := s.Mark()
			s.Place(parsed(s, testkit.Pod("p")), "n1")
			ask()
			s.Rollback(m)
		}, "n1", "n0n1n2"},
		{"a what-if that touches no node, with a question", func(s *cluster.State, ask func()) {
			m := s.Mark()
			s.SetObject(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
			ask()
			s.Rollback(m)
		}, "", ""},
		{"a what-if with a node that was never there", func(s *cluster.State, ask func()) {
			m := s.Mark()
			s.SetNode(s.Schema.ParseNode(testkit.Node("n3").Obj(), ""))
			ask()
			s.Rollback(m)
		}, "", "n0n1n2"},
		{"more changes than the journal keeps", func(s *cluster.State, _ func()) {
			s.Place(parsed(s, testkit.Pod("p")), "n1")
			s.Trim(s.Head())
		}, "n0n1n2", "n0n1n2"},
	} {
		for _, beyond := range []bool{false, true} {
			want := c.local
			if beyond {
				want = c.beyond
			}
			s, e, local := preempting(beyond, "n0", "n1", "n2")
			class := e.Class(parsed(s, testkit.Pod("vip").Priority(10)))
			e.Preempt(class)
			if got := local.ran(); got != "n0n1n2" {
				t.Errorf("at first: filtered %s, want all", got)
			}
			c.change(s, func() {
				e.Preempt(class)
				local.ran()
			})
			e.Preempt(class)
			if got := local.ran(); got != want {
				t.Errorf("%s, looking beyond the node %v: filtered %q, want %q", c.name, beyond, got, want)
			}
		}
	}
}

// 256 classes keep dry runs; the one that asked longest ago makes room for the next.
func TestDryRunsAreKeptForTheClassesThatAskedLast(t *testing.T) {
	s, e, local := preempting(false, "n0")
	ask := func(i int) string {
		e.Preempt(e.Class(parsed(s, testkit.Pod("vip").Label("app", fmt.Sprint(i)).Priority(10))))
		return local.ran()
	}
	for i := range 256 {
		ask(i)
	}
	for _, c := range []struct {
		class int
		want  string
	}{{0, ""}, {256, "n0"}, {0, ""}, {256, ""}, {2, ""}, {1, "n0"}, {0, ""}, {3, "n0"}} {
		if got := ask(c.class); got != c.want {
			t.Errorf("class %d filtered %q, want %q", c.class, got, c.want)
		}
	}
}

// A class that was swept leaves its room to others.
func TestSweptClassesKeepNoDryRuns(t *testing.T) {
	s, e, local := preempting(false, "n0")
	vip := parsed(s, testkit.Pod("vip").Priority(10))
	e.Preempt(e.Class(vip))
	e.Sweep(func(*engine.Class) bool { return false })
	s.Place(parsed(s, testkit.Pod("p")), "n0")
	local.ran()
	if best, ok := e.Preempt(e.Class(vip)); !ok || len(best.Pods) != 2 || local.ran() != "n0" {
		t.Errorf("the class made again preempts %d pods, %v; want both, after a dry run", len(best.Pods), ok)
	}
}
