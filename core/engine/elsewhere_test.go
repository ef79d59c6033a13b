package engine_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// spreadSubject returns a pod that one of the rules beyond single nodes may keep from nodes.
func spreadSubject(t *rapid.T, w *testkit.World) *testkit.PodBuilder {
	switch testkit.Uniform(t, 4, "kind") {
	case 0:
		return testkit.Pod("subject").Label("app", "web").SpreadHard(v1.LabelTopologyZone, 1, "app", "web")
	case 1:
		return testkit.Pod("subject").Apart(v1.LabelTopologyZone, "app", "web")
	case 2:
		return testkit.Pod("subject").Together(v1.LabelTopologyZone, "app", "web")
	}
	return &testkit.PodBuilder{Pod: *w.Pod(t, "subject")}
}

// TestPropertyHelpElsewhereMissesNothing: when a node takes a class after a change that didn't
// touch the node, and didn't before, then MayHelpElsewhere has said so.
func TestPropertyHelpElsewhereMissesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, e, _ := setUp(rapid.IntRange(2, 5).Draw(t, "nodes"))
		w.Furnish(t)
		for range rapid.IntRange(0, 20).Draw(t, "before") {
			w.Change(t)
		}
		p := w.State.Schema.ParsePod(spreadSubject(t, w).Obj())
		for range 40 {
			c, before := e.Class(p), map[cluster.NodeIndex]bool{}
			w.State.Nodes(func(n *cluster.Node) { before[n.Index] = e.FitsOn(c, n) })
			from, version := w.State.Head(), w.State.SignatureVersion()
			what := w.Change(t)
			changes, _ := w.State.Since(from)
			touched := map[cluster.NodeIndex]bool{}
			for i := range changes {
				touched[changes[i].Node] = true
			}
			mayHelp := e.MayHelpElsewhere(c, changes)
			if version != w.State.SignatureVersion() || e.Class(p) != c {
				continue // pods are signed again then, and tried
			}
			w.State.Nodes(func(n *cluster.Node) {
				if fits, known := before[n.Index]; known && !fits && !touched[n.Index] && !mayHelp && e.FitsOn(c, n) {
					t.Fatalf("after %q %s takes the class, and nothing said that it may", what, n.Name)
				}
			})
		}
	})
}

// TestWhatHelpsElsewhere: a class with a spread of its own may be helped by its own pods and by
// nodes, and not by the pods of others. Waiting pods aren't looked at then.
func TestWhatHelpsElsewhere(t *testing.T) {
	schema := cluster.NewSchema()
	s := cluster.New(schema)
	e := testkit.Must(engine.New(s, plugins.Default(schema, plugins.Options{}), engine.Options{}))
	node := func(name, zone string) {
		s.SetNode(schema.ParseNode(testkit.Node(name).Alloc("cpu", "4", "memory", "4Gi").Zone(zone).Obj(), ""))
	}
	pod := func(name, app string) *cluster.Pod {
		return schema.ParsePod(testkit.Pod(name).Label("app", app).SpreadHard(v1.LabelTopologyZone, 1, "app", app).Obj())
	}
	node("a", "a")
	node("b", "b")
	c := e.Class(pod("web", "web"))
	e.Class(pod("db", "db"))
	for _, x := range []struct {
		name string
		do   func()
		want bool
	}{
		{"nothing", func() {}, false},
		{"a pod of another app comes", func() { s.Place(pod("db-1", "db"), "a") }, false},
		{"one is nominated", func() { s.Nominate(pod("db-2", "db"), "b") }, false},
		{"one of its own is nominated", func() { s.Nominate(pod("web-1", "web"), "b") }, false},
		{"one of its own comes", func() { s.Place(pod("web-1", "web"), "a") }, true},
		{"that one leaves", func() { s.Remove("pod-web-1") }, true},
		{"the other app's leaves", func() { s.Remove("pod-db-1") }, false},
		{"a node comes", func() { node("c", "c") }, true},
		{"a headroom begins", func() {
			s.SetHeadroom(&cluster.Headroom{ID: "h", Namespace: "default", Labels: map[string]string{"app": "web"}})
		}, true},
	} {
		from := s.Head()
		x.do()
		changes, _ := s.Since(from)
		if got := e.MayHelpElsewhere(c, changes); got != x.want {
			t.Errorf("%s: it may help is %t, want %t", x.name, got, x.want)
		}
	}
}
