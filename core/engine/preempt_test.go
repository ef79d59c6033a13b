package engine_test

import (
	"fmt"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/testkit"
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
