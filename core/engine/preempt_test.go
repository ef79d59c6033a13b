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
