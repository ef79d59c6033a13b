package engine_test

import (
	"fmt"
	"strings"
	"testing"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins/defaultpreemption"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestMembersElsewhereLeaveToo: what leaves n0, which takes one pod, with a member whose group goes as
// a whole, follows what happens to members on other nodes, to the group, and to budgets that cover them.
func TestMembersElsewhereLeaveToo(t *testing.T) {
	whole := testkit.PodGroup("g", 2, "")
	whole.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	important := whole.DeepCopy()
	important.Spec.Priority = new(int32(10))
	single := testkit.PodGroup("g", 2, "")
	member := func(name string) *testkit.PodBuilder { return testkit.Pod(name).PodGroup("g") }
	for _, c := range []struct {
		name   string
		change func(*cluster.State, func())
		want   string // the victims on n0, and how many violate a budget
	}{
		{"nothing", func(*cluster.State, func()) {}, "m0 m1 0"},
		{"a member comes", func(s *cluster.State, _ func()) { s.Place(parsed(s, member("m2")), "n2") }, "m0 m1 m2 0"},
		{"one that can't leave comes", func(s *cluster.State, _ func()) { s.Place(parsed(s, member("m2").Priority(10)), "n2") }, "none"},
		{"a member goes", func(s *cluster.State, _ func()) { s.Remove("pod-m1") }, "m0 0"},
		{"a member comes in a what-if", func(s *cluster.State, ask func()) {
			m := s.Mark()
			s.Place(parsed(s, member("m2").Priority(10)), "n2")
			ask()
			s.Rollback(m)
		}, "m0 m1 0"},
		{"its members go singly", func(s *cluster.State, _ func()) { s.SetObject(single) }, "m0 0"},
		{"the group gets a priority", func(s *cluster.State, _ func()) { s.SetObject(important) }, "none"},
		{"a budget of a member elsewhere", func(s *cluster.State, ask func()) {
			s.SetObject(testkit.Budget("b", 1, "app", "db"))
			ask()
			s.SetObject(testkit.Budget("b", 0, "app", "db"))
		}, "m0 m1 1"},
	} {
		s := named("n0", "n1", "n2")
		s.SetObject(whole)
		s.Place(parsed(s, member("m0")), "n0")
		s.Place(parsed(s, member("m1").Label("app", "db")), "n1")
		rules := framework.Rules{Local: &localScript{reads: framework.ReadsPods, limit: 1}}
		profile := &framework.Profile{Preempter: defaultpreemption.Plugin{},
			Plugins: []framework.Weighted{weighted(1, &scripted{name: "A", rules: rules, sign: signsLabel("app", false)})}}
		e := testkit.Must(engine.New(s, profile, engine.Options{}))
		class := e.Class(parsed(s, testkit.Pod("vip").Priority(5)))
		ask := func() string {
			for _, x := range e.Candidates(class) {
				if s.Node(x.Node).Name == "n0" {
					var names []string
					for _, p := range x.Pods {
						names = append(names, p.Object.Name)
					}
					return fmt.Sprint(strings.Join(names, " "), " ", x.Violations)
				}
			}
			return "none"
		}
		if got := ask(); got != "m0 m1 0" {
			t.Fatalf("at first %s leave", got)
		}
		c.change(s, func() { ask() })
		if got := ask(); got != c.want {
			t.Errorf("%s: %s leave, want %s", c.name, got, c.want)
		}
	}
}
