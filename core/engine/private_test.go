package engine

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// apart is a cluster of nodes in three zones, with a class that spreads over zones and
// keeps apart from pods of app web by hostname: nodes where such pods run are exceptional.
type apart struct {
	t *testing.T
	*cluster.State
	e     *Engine
	class *Class
}

func newApart(t *testing.T, n, exceptional int) *apart {
	schema := cluster.NewSchema()
	s := cluster.New(schema)
	for i := range n {
		s.SetNode(schema.ParseNode(testkit.Node(fmt.Sprint("n", i)).Alloc("cpu", "64", "memory", "64Gi").Zone(fmt.Sprint("z", i%3)).Obj(), ""))
	}
	a := &apart{t: t, State: s, e: testkit.Must(New(s, plugins.Default(schema, plugins.Options{}), Options{Seed: 1}))}
	for i := range exceptional {
		a.place("web", i)
	}
	a.class = a.e.Class(schema.ParsePod(testkit.Pod("subject").Label("app", "subject").Apart(v1.LabelHostname, "app", "web").SpreadHard(v1.LabelTopologyZone, 9, "app", "subject").Obj()))
	return a
}

func (a *apart) place(app string, node int) {
	name := fmt.Sprint(app, node)
	a.Place(a.Schema.ParsePod(testkit.Pod(name).Label("app", app).Obj()), fmt.Sprint("n", node))
}

// ask asks n times for the best node.
func (a *apart) ask(n int) {
	for range n {
		a.e.Best(a.class)
	}
}

// expect looks at the class's column, and compares its answers with those of an engine
// that has just been made.
func (a *apart) expect(when string, private bool) {
	a.t.Helper()
	got, want := a.e.Answers(a.class), []NodeAnswer(nil)
	fresh := testkit.Must(New(a.State, a.e.profile, a.e.options))
	if want = fresh.Answers(fresh.Class(a.class.pod)); !slices.Equal(got, want) {
		a.t.Errorf("%s: answers %v, those of a new engine %v", when, got, want)
	}
	best, _ := a.e.Best(a.class)
	if again, _ := fresh.Best(fresh.Class(a.class.pod)); best.Node != again.Node || best.Score != again.Score {
		a.t.Errorf("%s: best is %+v, by a new engine %+v", when, best, again)
	}
	if (a.class.private != nil) != private || a.e.privates[a.class.private] != private {
		a.t.Errorf("%s: the class has a private column: %v, want %v", when, a.class.private != nil, private)
	}
}

// For 36 nodes a private column costs buildCost·(36+64) = 1800 to build; 10 excluded nodes make
// 10 a question.
func TestAClassMovesToAPrivateColumnOnceItPays(t *testing.T) {
	a := newApart(t, 36, 10)
	a.ask(1) // which counts the changes so far, too
	a.class.privateGains = 0
	a.ask(179)
	if a.class.private != nil || a.class.privateGains != 1790 {
		t.Fatalf("after 179 questions the class has a column of its own: %v, gains %d; want none and 1790", a.class.private != nil, a.class.privateGains)
	}
	a.ask(1)
	if a.class.private == nil || a.class.privateGains != 0 {
		t.Fatalf("after 180 questions the class has a column of its own: %v, gains %d; want one, and 0", a.class.private != nil, a.class.privateGains)
	}
	a.expect("once it moved", true)
	a.e.fillView(a.class)
	if n := len(a.e.view.exceptional); n != 0 {
		t.Errorf("%d nodes are exceptional in a private column, want none", n)
	}
}

// A view keeps the memory that it was grown by for entries of exceptional nodes: the next
// question needs no more.
func TestQuestionsAboutAnUnchangedClusterAllocateNothing(t *testing.T) {
	a := newApart(t, 40, 9)
	a.ask(2)
	n := testing.AllocsPerRun(5, func() { a.ask(1) })
	if n != 0 {
		t.Errorf("%v allocations for a question, want none", n)
	}
	a.e.fillView(a.class)
	if v := &a.e.view; len(v.excluded) != 9 || len(v.exceptional) != 0 {
		t.Errorf("%d nodes are excluded and %d exceptional, want 9 and none", len(v.excluded), len(v.exceptional))
	}
	a.class = a.e.Class(a.Schema.ParsePod(testkit.Pod("prefers").Label("app", "subject").PreferApart(10, v1.LabelHostname, "app", "web").Obj()))
	a.ask(2)
	if n = testing.AllocsPerRun(5, func() { a.ask(1) }); n != 0 {
		t.Errorf("%v allocations for a question about exceptional nodes, want none", n)
	}
	a.e.fillView(a.class)
	if v := &a.e.view; len(v.excluded) != 0 || len(v.exceptional) != 9 {
		t.Errorf("of preferred anti-affinity %d nodes are excluded and %d exceptional, want none and 9", len(v.excluded), len(v.exceptional))
	}
}

// TestAnExcludedNodeIsToldWhy: who asks why nodes are rejected is told of each.
func TestAnExcludedNodeIsToldWhy(t *testing.T) {
	a := newApart(t, 9, 9)
	if _, ok := a.e.Best(a.class); ok {
		t.Fatal("a node takes a pod of which each node has what it keeps apart from")
	}
	if got, want := a.e.Diagnose(a.class).Message(), "0/9 nodes are available: 9 node(s) didn't match pod anti-affinity rules."; got != want {
		t.Errorf("the message is %q, want %q", got, want)
	}
}

func TestClassesWithoutHostFactsStayShared(t *testing.T) {
	a := newApart(t, 4, 2)
	a.class = a.e.Class(a.Schema.ParsePod(testkit.Pod("plain").Obj()))
	a.ask(1000)
	a.expect("after many questions", false)
}

func TestPrivateColumnsFollowTheCluster(t *testing.T) {
	moved := func(t *testing.T) *apart {
		a := newApart(t, 20, 10)
		a.ask(400)
		a.expect("at first", true)
		return a
	}
	t.Run("pods that come and go", func(t *testing.T) {
		a := moved(t)
		a.place("web", 12)
		a.expect("after a pod came", true)
		a.Remove("pod-web3")
		a.expect("after a pod went", true)
	})
	t.Run("a what-if", func(t *testing.T) {
		a := moved(t)
		m := a.Mark()
		a.place("web", 12)
		a.Remove("pod-web3")
		a.expect("inside", true)
		a.Rollback(m)
		a.expect("after it", true)
	})
	t.Run("a nomination", func(t *testing.T) {
		a := moved(t)
		best, _ := a.e.Best(a.class)
		a.Nominate(a.Schema.ParsePod(testkit.Pod("nominee").Label("app", "web").Obj()), a.Node(best.Node).Name)
		a.expect("with a pod nominated to the best node", true)
		if again, _ := a.e.Best(a.class); again.Node == best.Node {
			t.Error("the best node is one that another pod of app web is nominated to")
		}
	})
	t.Run("two nodes of one hostname", func(t *testing.T) {
		a := moved(t)
		a.SetNode(a.Schema.ParseNode(testkit.Node("n13").Alloc("cpu", "64").Label(v1.LabelHostname, "n12").Obj(), ""))
		a.expect("while they share it", false)
		a.place("web", 12)
		a.expect("after a pod came to one of them", false)
		a.ask(1000)
		a.expect("however often it asks", false)
	})
	t.Run("two nodes of one hostname, between two questions", func(t *testing.T) {
		a := moved(t)
		old := a.NodeByName("n13").NodeInfo
		a.SetNode(a.Schema.ParseNode(testkit.Node("n13").Alloc("cpu", "64").Label(v1.LabelHostname, "n12").Obj(), ""))
		a.place("web", 12)
		a.SetNode(old)
		a.expect("after they parted", false)
	})
	t.Run("more changes than questions", func(t *testing.T) {
		a := moved(t)
		for i := range 200 {
			a.place("db", 15)
			a.Remove("pod-db15")
			a.ask(i % 2)
		}
		a.expect("once following costs more", false)
	})
	t.Run("rules that are made again", func(t *testing.T) {
		a := moved(t)
		a.Place(a.Schema.ParsePod(testkit.Pod("foe").Apart(v1.LabelHostname, "app", "subject").Obj()), "n12")
		before := a.class.private
		a.ask(20) // which is worth more than following the change cost
		a.expect("after a pod came that keeps the class away", true)
		if a.class.private == before || len(a.e.privates) != 1 {
			t.Errorf("the class has the same column: %v, of %d; want another with its new rules, and the old one gone", a.class.private == before, len(a.e.privates))
		}
	})
	t.Run("swept", func(t *testing.T) {
		a := moved(t)
		a.e.Sweep(func(*Class) bool { return false })
		if len(a.e.privates) != 0 {
			t.Errorf("%d private columns are left of no class", len(a.e.privates))
		}
	})
}
